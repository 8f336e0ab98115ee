"""A kind of durable work: the table of its rows, its workflows, activities and repairs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import sqlalchemy as sa
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowHistoryEventFilterType,
)
from temporalio.service import RPCError, RPCStatusCode

from activities.outbox.relay import Standalone
from activities.parts import Parts
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.core.lifecycle.rules import REPORTED_FAILURES
from runtime.database import Database, UnitOfWork
from runtime.temporal.workflow_kinds import RESTARTS_IN_MEMO, Queue, WorkflowKind


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution; `attempt` counts the tries of the workflow task that is due, 0 for none.

    `restarts` counts the executions that ended before it without closing its row; `failure` is the
    type of the error that a failed one ended with.
    """

    status: WorkflowExecutionStatus
    attempt: int
    restarts: int = 0
    failure: str | None = None
    busy: bool = False
    """True while an activity or a child of it runs."""

    @property
    def sleeps(self) -> bool:
        """True when it is open and has dealt with all it was told."""
        return self.status is WorkflowExecutionStatus.RUNNING and self.attempt == 0

    @property
    def reported_an_end(self) -> bool:
        """True when its code came to an end, which is the end of its row (ADR 0020)."""
        completed = self.status is WorkflowExecutionStatus.COMPLETED
        return completed or self.failure in REPORTED_FAILURES


async def describe_execution(client: Client, workflow_id: str) -> Execution | None:
    """The execution; None when Temporal knows none of this id."""
    handle = client.get_workflow_handle(workflow_id)
    try:
        described = await handle.describe()
        failed = described.status is WorkflowExecutionStatus.FAILED
        failure = await _failure(handle) if failed else None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    assert described.status is not None, "Temporal always says"
    raw = described.raw_description
    busy = bool(raw.pending_activities or raw.pending_children)
    restarts = await described.memo_value(RESTARTS_IN_MEMO, 0, type_hint=int)
    attempt = raw.pending_workflow_task.attempt
    return Execution(described.status, attempt, restarts, failure, busy)


async def describe_standalone(client: Client, activity_id: str) -> Execution | None:
    """The execution of a standalone activity; None when Temporal knows none of this id."""
    handle = client.get_activity_handle(activity_id)
    try:
        described = await handle.describe(include_input=True, include_outcome=True)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    outcome = described.raw_outcome
    failure = outcome.failure.application_failure_info.type if outcome is not None else None
    # The id of its row, and the number of restarts if there were any.
    restarts = (await described.input() or [])[1:]
    status = WorkflowExecutionStatus[described.status.name]
    return Execution(status, 0, sum(restarts), failure)


async def _failure(handle: WorkflowHandle[Any, Any]) -> str | None:
    """The type of the error in the last event."""
    closed = WorkflowHistoryEventFilterType.CLOSE_EVENT
    async for event in handle.fetch_history_events(event_filter_type=closed):
        failure = event.workflow_execution_failed_event_attributes.failure
        return failure.application_failure_info.type
    return None


MOST_RESTARTS = 3
"""Executions of a row that may end one after the other without closing it."""

Activities = Mapping[Queue, Sequence[Callable[..., Any]]]

Extra = Callable[[], Awaitable[int]]
"""A further repair of a handler; gives how often it was made."""


class Verdict(StrEnum):
    """The verdict on an open row."""

    LEAVE = "leave"
    RESTART = "restart"
    """It has no execution that could end it, and its row says where to continue."""
    CLOSE = "close"
    """Its execution ended without closing it."""


class EndKind(StrEnum):
    """The end of an execution that did not close its row."""

    CANCELLED = "cancelled"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class AbnormalEnd:
    """The end of an execution, and the reason that its row shows."""

    kind: EndKind
    reason: str


@dataclass(frozen=True, slots=True)
class SweepContext:
    """The tools of the repairs of a sweep; a start younger than `grace` may still arrive."""

    database: Database
    client: Client
    grace: timedelta


class WorkRow(Protocol):
    """The columns that a row of every handler has."""

    id: Id
    workspace_id: Id
    status: str


RowT = TypeVar("RowT", bound=WorkRow)


def next_restart(latest: Execution | None) -> int:
    """The number of a row's executions that came before the one that is started now."""
    return 1 if latest is None else latest.restarts + 1


class WorkHandler(Generic[RowT]):
    """A handler whose rows are started, executed and closed the plain way; others override.

    Everything that the platform does with a handler follows from this (`cli/work_handlers`).
    """

    name: str
    """The first part of what its repairs are counted as."""
    kind: WorkTable
    row: type[RowT]
    """The class whose attributes are the columns that `rows` selects."""
    workflows: ClassVar[Mapping[WorkflowKind, type[Any]]]
    """The workflow of each name whose executions have their rows in the table."""
    children: ClassVar[Sequence[type[Any]]] = ()
    """The workflows that those start as parts of themselves."""
    pinned: ClassVar[bool] = False
    """True for work that is long, and whose code may change while it is open.

    Where an operator promotes builds of the workers, its executions stay with the build that began
    them. All others continue with the current build (ADR 0101).
    """
    queue: ClassVar[Queue] = Queue.AUTOMATION
    """The queue of the tasks of its workflows."""
    standalone: ClassVar[Standalone | None] = None
    """The activity that is its execution in place of a workflow (ADR 0116)."""

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """The handler in a process with these parts."""
        del parts
        return cls()

    def activities(self, parts: Parts) -> Activities:
        """The activities that its workflows execute, by queue."""
        raise NotImplementedError

    def rows(self) -> sa.Select[Any]:
        """The rows to check, with the columns that the other methods need."""
        return sa.select(self.kind.table)

    def workflow_id(self, row: RowT) -> str:
        """The id of a row's execution: mostly of the one name that the handler has, and the row."""
        (handler,) = self.workflows
        return handler.workflow_id(row.id)

    async def describe(self, client: Client, row: RowT) -> Execution | None:
        """The execution of a row; None when Temporal knows of none."""
        execution_id = self.workflow_id(row)
        if self.standalone is not None:
            alone = await describe_standalone(client, execution_id)
            if alone is not None:
                return alone
        return await describe_execution(client, execution_id)

    def abandoned(self, row: RowT) -> str | None:
        """The reason an open row is awaited no longer, and is then cancelled; mostly None."""
        del row
        return None

    def judge(self, row: RowT, latest: Execution | None) -> Verdict:
        """The verdict on an open row, given its execution; None when Temporal knows of none.

        The rows have all that is needed to continue. So a missing execution begins again, and so
        does one that ended while its row, put back by a restore, is still open.
        """
        del row
        if latest is None:
            return Verdict.RESTART
        if latest.status is WorkflowExecutionStatus.RUNNING:
            return Verdict.LEAVE
        # Without a bound, code that ends without closing its row would be restarted in every sweep.
        again = latest.reported_an_end and latest.restarts < MOST_RESTARTS
        return Verdict.RESTART if again else Verdict.CLOSE

    async def restart(self, work: UnitOfWork, row: RowT, latest: Execution | None) -> None:
        """Have the execution of a row started, or told to begin. Idempotent by id.

        The request of a start says `next_restart(latest)`.
        """
        raise NotImplementedError

    async def close(self, context: SweepContext, row: RowT, end: AbnormalEnd) -> bool:
        """Close a row; False when it was closed before."""
        raise NotImplementedError

    def extras(self, context: SweepContext) -> Mapping[str, Extra]:
        """Further repairs, by what they are counted as."""
        del context
        return {}

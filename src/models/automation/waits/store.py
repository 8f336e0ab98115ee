"""Rows of waits and of kept events: begun, changed under the lock of the row, and ended once."""

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.automation.automation_runs.node_writes import NodeKey
from models.automation.automation_runs.queries import accepted_at
from models.automation.automation_runs.rules import NodeWrittenError
from models.automation.waits.rules import Resolution, Response, replay, terms_of, timed_out
from models.core.base import Id, JsonObject
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of
from runtime.postgresql.statements import lock_name
from runtime.processes.bounded_processes import evaluate_bounded
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind


class RunWait(SQLModel, table=True):
    """A node that waits for a response. Without `workflow_id`, it does not wait yet.

    `workflow_id` is the execution that hosts the node. `terms` are the parameters that
    decide on responses. `responses` are those received, oldest first. Once `outcome` is set, the
    row does not change.
    """

    __tablename__ = "run_wait"
    __table_args__ = (
        same_workspace("run_id", "automation_run.id"),
        sa.CheckConstraint("kind IN ('approval', 'wait_event')", name="kind"),
        sa.CheckConstraint(
            "outcome IN ('approved', 'rejected', 'always', 'timeout')", name="outcome"
        ),
        sa.CheckConstraint("(outcome IS NULL) = (resolved_at IS NULL)", name="resolved"),
        partial_index(
            "ix_run_wait_event_key",
            "workspace_id",
            "event_key",
            where="event_key IS NOT NULL AND outcome IS NULL",
        ),
        partial_index(
            "ix_run_wait_pending_approval",
            "workspace_id",
            "created_at",
            where="kind = 'approval' AND outcome IS NULL",
        ),
    )

    run_id: Id = Field(primary_key=True)
    node_id: str = Field(primary_key=True)
    scope_key: str = Field(primary_key=True)
    workspace_id: Id
    kind: str
    workflow_id: str | None = None
    event_key: str | None = None
    terms: dict[str, Any] = Field(sa_type=JSONB)
    responses: list[dict[str, Any]] = Field(sa_type=JSONB)
    outcome: str | None = None
    output: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    event_id: Id | None = None
    """The event that resolved it."""
    created_at: datetime = Field(sa_type=Timestamp)
    resolved_at: datetime | None = Field(default=None, sa_type=Timestamp)


class AutomationEvent(SQLModel, table=True):
    """A published event, kept for the runs that were open then: they may wait for it later."""

    __tablename__ = "automation_event"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.Index("ix_automation_event_event_key", "workspace_id", "event_key", "id"),
        sa.Index("ix_automation_event_created_at", "workspace_id", "created_at"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    event_key: str
    data: dict[str, Any] = Field(sa_type=JSONB)
    user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)


run_wait = table_of(RunWait)
automation_event = table_of(AutomationEvent)


@dataclass(frozen=True, slots=True)
class NewWait:
    """A node about to wait; `starter` is whoever started its run.

    `variables` are what its filter reads of the run.
    """

    key: NodeKey
    workflow_id: str
    parameters: JsonObject
    starter: Id | None
    variables: JsonObject = field(default_factory=dict)

    @property
    def event_key(self) -> str | None:
        return self.parameters.get("eventKey")

    @property
    def terms(self) -> JsonObject:
        return terms_of(self.key.kind, self.parameters, self.variables)


async def begin_wait(work: UnitOfWork, wait: NewWait) -> Resolution | None:
    """Begin a wait. Returns its resolution if a response kept from before resolves it.

    Kept responses that do not count are dropped. Repeating this changes nothing.
    """
    key = wait.key
    if wait.event_key is not None:
        await lock_event_key(work, key.workspace_id, wait.event_key)
    row = await lock_wait(work, key)
    if row is not None and row.workflow_id is not None:
        return read_resolution(row)
    received = [] if row is None else read_responses(row)
    if wait.event_key is not None:
        received += await events_before(work, key, wait.event_key)
    accepted_responses, resolution = await evaluate_bounded(
        lambda: replay(key.kind, wait.terms, wait.starter, received)
    )
    values = {
        "workflow_id": wait.workflow_id,
        "terms": wait.terms,
        "event_key": wait.event_key,
        "responses": stored_responses(accepted_responses),
        **({} if resolution is None else resolved_values(work, resolution, accepted_responses[-1])),
    }
    if row is None:
        await insert_wait(work, key, **values)
    else:
        await update_wait(work, key, **values)
    return resolution


async def end_wait(work: UnitOfWork, key: NodeKey, *, over: bool) -> Resolution | None:
    """The resolution of a wait; None while it lasts. With `over`, it times out now."""
    row = await lock_wait(work, key)
    assert row is not None, "a node that waits has its row"
    if (ended := read_resolution(row)) is not None:
        return ended
    if not over:
        return None
    resolution = timed_out(key.kind, read_responses(row))
    await update_wait(work, key, **resolved_values(work, resolution))
    return resolution


RESOLVE_NODE = "resolve_node"
"""The signal to the execution that hosts a node: its wait has been resolved."""

MAX_EVENTS = 100
"""Kept events that are tried when a node begins to wait."""


class HostedWait(Protocol):
    """A wait whose node has an execution that hosts it."""

    run_id: Id
    node_id: str
    scope_key: str
    workspace_id: Id
    workflow_id: str | None


async def lock_wait(work: UnitOfWork, key: NodeKey) -> RunWait | None:
    """The wait of a node, which no one else changes until the transaction ends."""
    return await work.first(sa.select(run_wait).where(*_this(key)).with_for_update(), of=RunWait)


async def find_wait(work: UnitOfWork, key: NodeKey) -> RunWait | None:
    """The wait of a node as it is."""
    return await work.first(sa.select(run_wait).where(*_this(key)), of=RunWait)


async def insert_wait(work: UnitOfWork, key: NodeKey, **values: object) -> None:
    """Insert the wait of a node that waits, or will. Raises NodeWrittenError when it has one."""
    row = {"terms": {}, "responses": [], **values}
    values = {
        "run_id": key.run_id,
        "node_id": key.node_id,
        "scope_key": key.scope_key,
        "workspace_id": key.workspace_id,
        "kind": key.kind,
        "created_at": work.now,
        **row,
    }
    statement = upsert(run_wait).values(values).on_conflict_do_nothing()
    if await work.first(statement.returning(run_wait.c.run_id)) is None:
        raise NodeWrittenError


async def update_wait(work: UnitOfWork, key: NodeKey, **values: object) -> None:
    """Change a wait whose lock is held."""
    await work.execute(sa.update(run_wait).where(*_this(key)).values(**values))


def resolved_values(
    work: UnitOfWork, resolution: Resolution, response: Response | None = None
) -> JsonObject:
    """The columns of a wait that ends; `response` is what ended it."""
    event_id = None if response is None else response.event_id
    return {
        "outcome": resolution.outcome,
        "output": resolution.output,
        "event_id": None if event_id is None else uuid.UUID(event_id),
        "resolved_at": work.now,
    }


async def end_waits(
    work: UnitOfWork, waits: Sequence[RunWait], resolution: Resolution, response: Response
) -> None:
    """End waits, whose locks are held, with one resolution, and wake their executions."""
    ended = _keys_of(waits)
    changed = sa.update(run_wait).where(
        run_wait.c.run_id == ended.c.run_id,
        run_wait.c.node_id == ended.c.node_id,
        run_wait.c.scope_key == ended.c.scope_key,
    )
    await work.execute(changed.values(resolved_values(work, resolution, response)))
    await wake_node(work, waits)


def _keys_of(waits: Sequence[RunWait]) -> sa.TableValuedAlias:
    """A table of the waits' keys: one event may end very many, and a list of them is slow."""
    names = ("run_id", "node_id", "scope_key")
    columns = [
        sa.literal([getattr(wait, name) for wait in waits], sa.ARRAY(run_wait.c[name].type))
        for name in names
    ]
    return sa.func.unnest(*columns).table_valued(*names).render_derived("ended")


async def wake_node(work: UnitOfWork, waits: Sequence[HostedWait]) -> None:
    """Signal the executions that host these nodes: their waits have been resolved."""
    await outbox.append_all(work, [_resolved_intent(wait) for wait in waits])


def _resolved_intent(wait: HostedWait) -> outbox.IntentArguments:
    assert wait.workflow_id is not None, "a node that waits has an execution"
    return {
        "intent": outbox.Intent.SIGNAL,
        "workflow_kind": WorkflowKind.AUTOMATION_RUN,
        "workspace_id": wait.workspace_id,
        "subject_id": wait.run_id,
        "request": {
            "workflowId": wait.workflow_id,
            "signal": RESOLVE_NODE,
            "arguments": [wait.node_id, wait.scope_key],
        },
    }


async def lock_event_key(work: UnitOfWork, workspace_id: Id, event_key: str) -> None:
    """Until the transaction ends, no event of this key comes and no node begins to wait for one.

    Lock order: the run, then the event key, then the wait.
    """
    place = f"event/{workspace_id}/{event_key}"
    await lock_name(work, place)


async def events_before(work: UnitOfWork, key: NodeKey, event_key: str) -> list[Response]:
    """The kept events of a key since the run was accepted that have resumed none of its nodes."""
    event = automation_event.c
    is_used = sa.exists().where(run_wait.c.run_id == key.run_id, run_wait.c.event_id == event.id)
    rows = await work.rows(
        sa.select(event.id, event.user_id, event.data, event.created_at)
        .where(
            event.workspace_id == key.workspace_id,
            event.event_key == event_key,
            event.created_at >= accepted_at(key.run_id),
            ~is_used,
        )
        .order_by(event.id)
        .limit(MAX_EVENTS)
    )
    return [
        Response(
            user_id=None if row.user_id is None else str(row.user_id),
            at=wire_timestamp(row.created_at),
            data=row.data,
            event_id=str(row.id),
        )
        for row in rows
    ]


def read_responses(row: RunWait) -> list[Response]:
    """The responses to a node, oldest first."""
    return [Response(**one) for one in row.responses]


def read_resolution(row: RunWait) -> Resolution | None:
    """The end of a wait; None while it lasts."""
    if row.outcome is None:
        return None
    assert row.output is not None, "a resolution has both"
    return Resolution(row.outcome, row.output)


def stored_responses(responses: Sequence[Response]) -> list[JsonObject]:
    """Responses as the column `responses` holds them."""
    return [asdict(one) for one in responses]


def _this(key: NodeKey) -> tuple[Any, ...]:
    return (
        run_wait.c.run_id == key.run_id,
        run_wait.c.node_id == key.node_id,
        run_wait.c.scope_key == key.scope_key,
    )

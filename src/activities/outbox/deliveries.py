"""The delivery of each intent of the outbox to Temporal; delivering one twice is harmless."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from runtime.fairness import fairness
from runtime.families import Family
from runtime.fault_injection import FaultPoint, inject_fault
from runtime.memos import RESTARTS, memo_of
from runtime.outbox import Intent, Outbox
from runtime.search_attributes import search_attributes
from runtime.tracing import caused_by

_REUSE = {
    False: WorkflowIDReusePolicy.REJECT_DUPLICATE,
    True: WorkflowIDReusePolicy.ALLOW_DUPLICATE,
}

START_TIMEOUT = timedelta(seconds=5)

Delivery = Callable[[Outbox], Awaitable[None]]
"""Delivers a row of the outbox; the relay repeats it later when it raises."""


@dataclass(frozen=True, slots=True)
class Route:
    """The start of a family: its workflow by type name, and the queue of its workflow tasks."""

    workflow: str
    task_queue: str


class ExecutionDeliveries:
    """Starts, signals and cancels executions."""

    def __init__(
        self, client: Client, routes: Mapping[Family, Route], *, eager: bool = True
    ) -> None:
        self._client = client
        self._routes = routes
        # An eager start is executed here, whichever version of the workers new work is for.
        self._eager = eager

    def by_intent(self) -> Mapping[Intent, Delivery]:
        """The delivery of each intent that is about one execution."""
        return {
            Intent.START: self.start,
            Intent.SIGNAL: self.signal,
            Intent.CANCEL: self.cancel,
        }

    async def start(self, row: Outbox) -> None:
        """Start the execution of a row, which takes its id from the row's own.

        For a child there is nothing to do: its caller has seen the claim.
        """
        if row.request.get("child"):
            return
        inject_fault(FaultPoint.AFTER_COMMIT_BEFORE_START, row.subject_id)
        family = Family(row.family)
        route, restarts = self._routes[family], row.request.get(RESTARTS)
        with contextlib.suppress(WorkflowAlreadyStartedError), caused_by(row.request):
            await self._client.start_workflow(
                route.workflow,
                str(row.subject_id),
                id=_workflow_id(row),
                task_queue=route.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                # Work begins anew only when its row is open and its execution has ended.
                id_reuse_policy=_REUSE[restarts is not None],
                memo=memo_of(row.request),
                request_eager_start=self._eager,
                static_summary=row.request.get("summary"),
                priority=fairness(row.workspace_id, family, row.request.get("weight", 1)),
                search_attributes=search_attributes(str(row.workspace_id), row.request, family),
                rpc_timeout=START_TIMEOUT,
            )
        inject_fault(FaultPoint.AFTER_START_BEFORE_MARK, row.subject_id)

    async def signal(self, row: Outbox) -> None:
        """Signal an execution; one that has ended has nothing left to hear."""
        handle = self._client.get_workflow_handle(row.request["workflowId"])
        with _ignoring_not_found():
            await handle.signal(
                row.request["signal"], args=row.request["arguments"], rpc_timeout=START_TIMEOUT
            )

    async def cancel(self, row: Outbox) -> None:
        """Cancel an execution; one that never started or has ended needs none."""
        handle = self._client.get_workflow_handle(_workflow_id(row))
        with _ignoring_not_found():
            await handle.cancel(rpc_timeout=START_TIMEOUT)


def _workflow_id(row: Outbox) -> str:
    return Family(row.family).workflow_id(row.subject_id, row.request.get("execution", ""))


@contextlib.contextmanager
def _ignoring_not_found() -> Iterator[None]:
    try:
        yield
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise

"""The relay: delivers the outbox to Temporal, fairly between workspaces."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

import psycopg
import sqlalchemy as sa
import structlog
from temporalio.client import Client
from temporalio.common import (
    ActivityIDConflictPolicy,
    ActivityIDReusePolicy,
    RetryPolicy,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import ActivityAlreadyStartedError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from typing_extensions import override

from activities.outbox.claims import BEFORE_ALL, PUT_BACK, Limits, claim, claimed_header
from activities.pollers import POLL_SECONDS, Loop
from models.automation.automation_runs.run_header import RunHeader
from models.core.base import Id
from models.core.lifecycle.commands import RUNNING
from runtime.clock import wait_until_set
from runtime.database import Database
from runtime.observability.tracing import caused_by
from runtime.processes.bounded_processes import room_to_evaluate
from runtime.processes.fault_injection import FaultPoint, inject_fault
from runtime.temporal.executions import fairness, search_attributes
from runtime.temporal.outbox import Intent, Outbox, outbox
from runtime.temporal.workflow_kinds import RESTARTS_IN_MEMO, WorkflowKind, memo_of

LOST_SECONDS = 2.0
"""After this time a run that has not begun no longer keeps others from starting."""
RECENT_SECONDS = 5.0
"""For this time after a start its workspace counts as one that starts runs, or other work."""
CROWDED_SECONDS = 5.0
"""A run waits no longer for the evaluations of its workspace before it goes back to the outbox."""
MOST_HELD = 10
"""Runs that wait here at once for evaluations: a relay has twenty places for all workspaces."""
LONGEST_REST = 0.25


@dataclass(slots=True)
class _Begin:
    """The begin of a run, and the seconds from its turn to it, which are more in a busy worker."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    seconds: float = 0.0


@dataclass(slots=True)
class _Start:
    """A run that was claimed."""

    workspace_id: Id
    before: _Begin | None
    """The begin of the run of its workspace that was claimed before it."""
    header: RunHeader | None = None
    """The run as it was claimed, before any begin."""
    at: float = field(default_factory=time.monotonic)
    turn_at: float = field(default_factory=time.monotonic)
    begin: _Begin = field(default_factory=_Begin)


class RunStarts:
    """The messages between the relay and the activities of one process.

    `on_room` is called when a start that was left in the outbox may have room now,
    `on_foreign_begin` when a run begins here that the relay of another process started.
    """

    def __init__(self) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self.on_foreign_begin: Callable[[], None] = lambda: None
        self.held = 0
        """The runs that were claimed and wait for their turn."""
        self._not_begun: dict[Id, _Start] = {}
        self._recent: dict[Id, _Start] = {}
        """The last start of each workspace that started runs of late."""
        self._other_work: dict[Id, float] = {}
        """The last start of other work of each workspace, which has more steps than a run."""
        self._waits_for_begin = self._waits_for_end = False
        self._enough = 1
        self._begun, self._ended = 0, False
        """The begins of runs since the last claim began, and that any has ended."""

    def started(self, run_id: Id, workspace_id: Id, header: RunHeader | None = None) -> None:
        """The relay has claimed a run of a workspace."""
        last = self._recent.get(workspace_id)
        start = _Start(workspace_id, last.begin if last else None, header)
        self._not_begun[run_id] = self._recent[workspace_id] = start

    def started_other(self, workspace_id: Id) -> None:
        """The relay has claimed an import, a job or other work of a workspace."""
        self._other_work[workspace_id] = time.monotonic()

    async def turn(self, run_id: Id) -> bool:
        """Wait until a run may start; False when its workspace has too many long evaluations.

        The run would only wait for them in Temporal, and ask again and again. Beside other
        workspaces it waits for the begin of the run before it.
        """
        start = self._not_begun.get(run_id)
        if start is None:
            return True
        self.held += 1
        try:
            async with asyncio.timeout(CROWDED_SECONDS if self.held <= MOST_HELD else 0):
                await room_to_evaluate(start.workspace_id)
            if start.before is not None and self.workspaces() > 1:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOST_SECONDS):
                        await self._follow(start.before, start.workspace_id)
        except TimeoutError:
            self._not_begun.pop(run_id, None)
            start.begin.event.set()
            return False
        finally:
            self.held -= 1
            start.turn_at = time.monotonic()
        return True

    async def _follow(self, before: _Begin, workspace_id: Id) -> None:
        """Wait for a begin. While other workspaces have work, pause for as long as it took.

        Each of the many steps of that work would wait for a worker that is always busy with runs.
        """
        await before.event.wait()
        if self._other_work.keys() - {workspace_id}:
            await asyncio.sleep(min(before.seconds, LONGEST_REST))

    def release(self) -> None:
        """Let all take their turn now: no begin is heard of any more."""
        for start in self._not_begun.values():
            start.begin.event.set()

    def claimed(self, run_id: Id) -> RunHeader | None:
        """A run that was claimed here and has not begun; not every claim reads it."""
        start = self._not_begun.get(run_id)
        return None if start is None else start.header

    def begun(self, run_id: Id, *, by_relay: bool = True) -> None:
        """A run began in this process; `by_relay` unless a workflow started it."""
        start = self._not_begun.pop(run_id, None)
        if start is None:
            if by_relay:
                self.on_foreign_begin()
            return
        start.begin.seconds = time.monotonic() - start.turn_at
        start.begin.event.set()
        self._begun += 1
        if self._waits_for_begin and self._has_room():
            self.on_room()

    def stopped_running(self) -> None:
        """A run ended in this process, or waits."""
        self._ended = True
        if self._waits_for_end:
            self.on_room()

    def workspaces(self) -> int:
        """The number of workspaces that started runs of late, or other work."""
        since = time.monotonic() - RECENT_SECONDS
        self._recent = {space: last for space, last in self._recent.items() if last.at > since}
        self._other_work = {space: at for space, at in self._other_work.items() if at > since}
        return len(self._recent.keys() | self._other_work.keys())

    def begin_claim(self) -> Sequence[Id]:
        """The relay begins a claim; the runs whose begin is waited for.

        Runs that began in other processes are among them.
        """
        since = time.monotonic() - LOST_SECONDS
        for run_id in [one for one, start in self._not_begun.items() if start.at <= since]:
            # Its begin may be heard no more: the run after it waits no longer, either.
            self._not_begun.pop(run_id).begin.event.set()
        self._begun, self._ended = 0, False
        return list(self._not_begun)

    def end_claim(self, *, waits_for_begin: bool, waits_for_end: bool, enough: int = 1) -> None:
        """The relay ends a claim, and says what the starts that it left wait for.

        The next claim comes when `enough` have begun: it costs as much for several as for one.
        """
        self._waits_for_begin, self._waits_for_end = waits_for_begin, waits_for_end
        self._enough = enough
        if (waits_for_begin and self._has_room()) or (waits_for_end and self._ended):
            self.on_room()

    def _has_room(self) -> bool:
        return self._begun >= self._enough or (self._begun > 0 and not self._not_begun)


_REUSE = {
    False: WorkflowIDReusePolicy.REJECT_DUPLICATE,
    True: WorkflowIDReusePolicy.ALLOW_DUPLICATE,
}

START_TIMEOUT = timedelta(seconds=5)

Delivery = Callable[[Outbox], Awaitable[None]]
"""Delivers a row of the outbox; the relay repeats it later when it raises."""


@dataclass(frozen=True, slots=True)
class Standalone:
    """An activity that is an execution by itself (ADR 0116), and its queue.

    Beside the id of its row it is given the number of executions that ended without closing it, if
    there were any.
    """

    activity: str
    task_queue: str
    start_to_close: timedelta
    heartbeat: timedelta
    retry: RetryPolicy


@dataclass(frozen=True, slots=True)
class Route:
    """The start of a workflow kind: its workflow by type name, and the queue of its workflow tasks.

    What is `standalone` has a workflow for executions that began before it was.
    """

    workflow: str
    task_queue: str
    standalone: Standalone | None = None


class ExecutionDeliveries:
    """Starts, signals and cancels executions."""

    def __init__(
        self, client: Client, routes: Mapping[WorkflowKind, Route], *, eager: bool = True
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
        route = self._routes[WorkflowKind(row.workflow_kind)]
        with caused_by(row.request):
            if route.standalone is None:
                await self._start_workflow(row, route)
            else:
                await self._start_activity(row, route.standalone)
        inject_fault(FaultPoint.AFTER_START_BEFORE_MARK, row.subject_id)

    async def _start_workflow(self, row: Outbox, route: Route) -> None:
        workflow_kind, restarts = WorkflowKind(row.workflow_kind), row.request.get(RESTARTS_IN_MEMO)
        with contextlib.suppress(WorkflowAlreadyStartedError):
            await self._client.start_workflow(
                route.workflow,
                str(row.subject_id),
                id=_execution_id(row),
                task_queue=route.task_queue,
                # A repeated delivery finds the execution that the first one started.
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                # Work begins again only when its row is open and its execution has ended.
                id_reuse_policy=_REUSE[restarts is not None],
                memo=memo_of(row.request),
                request_eager_start=self._eager,
                start_signal=row.request.get("signal"),
                static_summary=row.request.get("summary"),
                priority=fairness(row.workspace_id, workflow_kind, row.request.get("weight", 1)),
                search_attributes=search_attributes(
                    str(row.workspace_id), row.request, workflow_kind
                ),
                rpc_timeout=START_TIMEOUT,
            )

    async def _start_activity(self, row: Outbox, alone: Standalone) -> None:
        workflow_kind, restarts = WorkflowKind(row.workflow_kind), row.request.get(RESTARTS_IN_MEMO)
        with contextlib.suppress(ActivityAlreadyStartedError):
            await self._client.start_activity(
                alone.activity,
                args=[str(row.subject_id), *([] if restarts is None else [restarts])],
                id=_execution_id(row),
                task_queue=alone.task_queue,
                id_conflict_policy=ActivityIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=(
                    ActivityIDReusePolicy.REJECT_DUPLICATE
                    if restarts is None
                    else ActivityIDReusePolicy.ALLOW_DUPLICATE
                ),
                start_to_close_timeout=alone.start_to_close,
                heartbeat_timeout=alone.heartbeat,
                retry_policy=alone.retry,
                summary=row.request.get("summary"),
                priority=fairness(row.workspace_id, workflow_kind),
                search_attributes=search_attributes(
                    str(row.workspace_id), row.request, workflow_kind
                ),
                rpc_timeout=START_TIMEOUT,
            )

    async def signal(self, row: Outbox) -> None:
        """Signal an execution; one that has ended has nothing left to hear."""
        handle = self._client.get_workflow_handle(row.request["workflowId"])
        with _ignoring_not_found():
            await handle.signal(
                row.request["signal"], args=row.request["arguments"], rpc_timeout=START_TIMEOUT
            )

    async def cancel(self, row: Outbox) -> None:
        """Cancel an execution; one that never started or has ended needs none."""
        if self._routes[WorkflowKind(row.workflow_kind)].standalone is not None:
            alone = self._client.get_activity_handle(_execution_id(row))
            with _ignoring_not_found():
                await alone.cancel(rpc_timeout=START_TIMEOUT)
                return
        handle = self._client.get_workflow_handle(_execution_id(row))
        with _ignoring_not_found():
            await handle.cancel(rpc_timeout=START_TIMEOUT)


def _execution_id(row: Outbox) -> str:
    return WorkflowKind(row.workflow_kind).workflow_id(
        row.subject_id, row.request.get("execution", "")
    )


@contextlib.contextmanager
def _ignoring_not_found() -> Iterator[None]:
    try:
        yield
    except RPCError as error:
        # The execution has ended, or its start was removed: the row has the truth.
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise


log = structlog.get_logger()

BATCH = 20
"""Rows claimed at once, and so the number of concurrent deliveries."""
STARTING = 8
"""Runs that a relay has started and that have not begun: enough to keep its worker busy."""
AHEAD = 10
"""Runs that several workspaces together have claimed, of which each starts one after the other."""
DELETION_SECONDS = 0.05
"""A delivered row stays for this time, and is deleted together with later ones."""
_OF_ONE_STEP = frozenset({WorkflowKind.DELIVERY, WorkflowKind.TIMER_DUE})
LONGEST_BACKOFF = timedelta(seconds=5)
LIMITS = Limits(BATCH, STARTING, AHEAD, RUNNING)


class Relay(Loop):
    """Delivers until stopped; `wake` makes it look at once."""

    due: ClassVar[sa.ColumnElement[bool]] = sa.exists().where(
        outbox.c.claimed_until.is_(None) | (outbox.c.claimed_until <= sa.func.now())
    )
    prompt: ClassVar[bool] = False
    """A notification wakes it without a look."""

    def __init__(
        self,
        database: Database,
        deliveries: Mapping[Intent, Delivery],
        starts: RunStarts,
        limits: Limits = LIMITS,
    ) -> None:
        self._database = database
        self._deliveries = deliveries
        self._starts = starts
        self._limits = limits
        self._wake = asyncio.Event()
        self._crowded = False
        """The last claim left no room for another row."""
        self._under_way: set[asyncio.Task[None]] = set()
        self._delivered: list[int] = []
        self._deletion: asyncio.TimerHandle | None = None
        self._last_line = BEFORE_ALL
        starts.on_room = self.wake

    def wake(self) -> None:
        """Look for new rows now."""
        self._wake.set()

    @override
    async def run(self) -> None:
        """Deliver; what waits for its turn when this is stopped goes to Temporal at once."""
        try:
            await super().run()
        finally:
            self._starts.release()

    @override
    async def step(self) -> None:
        """Claim rows, begin their deliveries, and wait for more."""
        self._wake.clear()
        room = self._limits.rows - len(self._under_way)
        claimed = await self._claim(room)
        for row in claimed:
            if row.intent == Intent.START:
                self._note_start(row)
            task = asyncio.create_task(self._deliver(row))
            self._under_way.add(task)
            task.add_done_callback(self._done)
        self._crowded = len(self._under_way) >= self._limits.rows
        if len(claimed) < room or self._crowded:
            await self._wait()

    def _note_start(self, row: Outbox) -> None:
        if row.workflow_kind == WorkflowKind.AUTOMATION_RUN:
            self._starts.started(row.subject_id, row.workspace_id, claimed_header(row))
        elif row.workflow_kind not in _OF_ONE_STEP:
            self._starts.started_other(row.workspace_id)

    async def _wait(self) -> None:
        """Wait until there may be something to deliver, or to delete beside a slow delivery."""
        to_delete = self._delivered or self._under_way
        await wait_until_set(self._wake, POLL_SECONDS if to_delete else None)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Its claim runs out, and it is claimed again.
            log.warning("an intent was left", error=type(error).__name__)
        if self._crowded:
            self._wake.set()
        elif not self._under_way and self._deletion is None:
            loop = asyncio.get_running_loop()
            self._deletion = loop.call_later(DELETION_SECONDS, self._wake.set)

    async def _claim(self, limit: int) -> Sequence[Outbox]:
        """Delete the rows delivered since the last time, and claim the next ones."""
        if self._deletion is not None:
            self._deletion.cancel()
            self._deletion = None
        delivered = list(self._delivered)
        starting = self._limits.starting + self._starts.held
        limits = replace(self._limits, rows=limit, starting=starting)
        not_begun = self._starts.begin_claim()
        of_one = self._limits.of_one(self._starts.workspaces())
        async with self._database.statement() as work:
            batch = await claim(
                work, limits, not_begun, delivered, of_one=of_one, after=self._last_line
            )
        if batch.rows:
            last = batch.rows[-1]
            self._last_line = (last.workspace_id, last.intent, last.workflow_kind)
        # Only now: a claim that failed has deleted none of them.
        del self._delivered[: len(delivered)]
        self._starts.end_claim(
            waits_for_begin=batch.waits_for_begin,
            waits_for_end=batch.waits_for_end,
            enough=(of_one + 1) // 2,
        )
        return batch.rows

    async def _deliver(self, row: Outbox) -> None:
        try:
            if not await self._starts.turn(row.subject_id):
                await self._put_back(row)
                return
            await self._deliveries[Intent(row.intent)](row)
        except RPCError as error:
            log.warning("Temporal did not take an intent", id=row.id, code=error.status.name)
            await self._put_back(row)
        except Exception:
            # A defect in one delivery must not end the relay; the row is tried again after a
            # backoff.
            log.exception("an intent could not be delivered", id=row.id)
            await self._put_back(row)
        else:
            # Deleted with the next claim, which saves a transaction for each delivery.
            self._delivered.append(row.id)

    async def _put_back(self, row: Outbox) -> None:
        backoff = min(LONGEST_BACKOFF, timedelta(seconds=0.1 * 2 ** min(row.attempts, 10)))
        # Without this the claim itself runs out, only later.
        with contextlib.suppress(psycopg.Error):
            async with self._database.statement() as work:
                await PUT_BACK.execute(work, {"row_id": row.id, "backoff": backoff})

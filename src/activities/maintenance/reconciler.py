"""The reconciler: rows, executions and schedules that drifted apart are brought together."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol

import sqlalchemy as sa
import structlog
from temporalio import activity
from temporalio.client import (
    ActivityHandle,
    Client,
    ScheduleListDescription,
    ScheduleSpec,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.service import RPCError

from activities.maintenance import work_handlers
from activities.schedules import SCHEDULES, Schedules, note_of, spec_of
from models.automation.automation_runs.rules import OPEN_RUN, NodeStatus, RunStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.waits.store import HostedWait, run_wait, wake_node
from models.core.base import Id
from models.core.pauses.intents import is_resting
from models.core.schedules.commands import ScheduledRow, ScheduleTable, all_scheduled
from models.core.schedules.timetables import DesiredSchedule
from runtime.clock import utc_now
from runtime.database import Database, UnitOfWork
from runtime.ids import parse_id
from runtime.temporal.outbox import Intent, outbox
from runtime.temporal.workflow_kinds import SearchAttribute, WorkflowKind

log = structlog.get_logger()


async def end_orphans(
    context: work_handlers.SweepContext,
    handlers: Sequence[work_handlers.WorkHandler[Any]],
) -> dict[str, int]:
    """Terminate open executions whose row does not exist, cancel those whose row is closed.

    A row that closed within the grace is left: its execution may be about to end by itself. Returns
    the number of terminated executions by the name of their handler.
    """
    by_workflow = {name.value: handler for handler in handlers for name in handler.workflows}
    terminated = dict.fromkeys((handler.name for handler in handlers), 0)
    started_before = (activity.info().started_time - context.grace).isoformat()
    query = f"ExecutionStatus = 'Running' AND StartTime < '{started_before}'"
    async for execution_id, handle in _executions(context.client, query):
        try:
            handler = await _end(context, by_workflow, execution_id, handle)
        except RPCError:
            # It has ended meanwhile, or the next sweep comes back to it.
            log.warning("an execution could not be reconciled", workflow=execution_id)
            continue
        if handler is not None:
            terminated[handler.name] += 1
    return terminated


_Handle = WorkflowHandle[Any, Any] | ActivityHandle[Any]


async def _executions(client: Client, query: str) -> AsyncIterator[tuple[str, _Handle]]:
    """Workflows and standalone activities, by id."""
    async for workflow in client.list_workflows(query):
        yield workflow.id, client.get_workflow_handle(workflow.id)
    async for one in client.list_activities(query):
        yield one.activity_id, client.get_activity_handle(one.activity_id)


async def _end(
    context: work_handlers.SweepContext,
    known: Mapping[str, work_handlers.WorkHandler[Any]],
    execution_id: str,
    handle: _Handle,
) -> work_handlers.WorkHandler[Any] | None:
    """The handler of the execution if it was terminated.

    An id is `<workflow kind>/<row id>`, and below it are the parts of a run's long loops.
    """
    name, _, rest = execution_id.partition("/")
    handler, row_id = known.get(name), parse_id(rest.partition("/")[0])
    if handler is None or row_id is None:
        return None
    fate = await _fate(context, handler, row_id)
    if fate is None:
        # Its code could only fail to find its row, so it is not asked to end in order.
        await handle.terminate(reason="No row has this id.")
        return handler
    if fate:
        await handle.cancel()
    return None


async def _fate(
    context: work_handlers.SweepContext,
    handler: work_handlers.WorkHandler[Any],
    row_id: Id,
) -> bool | None:
    """True when the execution of a row has nothing left to do; None without a row."""
    kind = handler.kind
    columns = kind.table.c
    async with context.database.transaction() as work:
        closed = ~kind.is_open & (columns[kind.ended_column] <= work.now - context.grace)
        row = await work.first(sa.select(closed.label("closed")).where(columns.id == row_id))
        return None if row is None else bool(row.closed)


GRACE = timedelta(seconds=20)
"""A row or execution younger than this is still on its way."""
BATCH = 500
"""Rows read at once."""
POISONED = 5
"""Tries of one workflow task after which work is reported: code must change, or be put back."""

_ENDS = {
    WorkflowExecutionStatus.CANCELED: work_handlers.AbnormalEnd(
        work_handlers.EndKind.CANCELLED, "Cancelled in Temporal."
    ),
    WorkflowExecutionStatus.TERMINATED: work_handlers.AbnormalEnd(
        work_handlers.EndKind.FAILED, "Terminated in Temporal."
    ),
    WorkflowExecutionStatus.TIMED_OUT: work_handlers.AbnormalEnd(
        work_handlers.EndKind.TIMED_OUT, "The execution timed out."
    ),
    WorkflowExecutionStatus.COMPLETED: work_handlers.AbnormalEnd(
        work_handlers.EndKind.FAILED, "The execution ended without writing its result."
    ),
}
_DIED = work_handlers.AbnormalEnd(work_handlers.EndKind.FAILED, "The execution failed.")
_GONE = work_handlers.AbnormalEnd(
    work_handlers.EndKind.FAILED, "The execution no longer exists in Temporal."
)
"""For handlers that cannot continue from their rows."""

_REPAIRS = ("restarted", "closed", "poisoned")


class Reconciler:
    """Sweeps over the open rows of all registered handlers."""

    def __init__(
        self,
        database: Database,
        client: Client,
        handlers: Sequence[work_handlers.WorkHandler[Any]],
        *,
        grace: timedelta = GRACE,
        batch: int = BATCH,
    ) -> None:
        self._context = work_handlers.SweepContext(database, client, grace)
        self._handlers = handlers
        self._batch = batch
        before = sa.func.now() - grace
        self._look = sa.select(
            *(_open(each, before).exists().label(each.name) for each in handlers)
        )

    @activity.defn(name="reconcile_open_work")
    async def reconcile(self) -> dict[str, int]:
        """One sweep: how often each repair of each handler was made.

        Safe to repeat: every repair is a conditional update or idempotent by id.
        """
        counts: dict[str, int] = {}
        # Mostly no handler has such rows, which one statement finds out.
        async with self._context.database.reading() as work:
            (have_rows,) = await work.rows(self._look)
        for handler, has_rows in zip(self._handlers, have_rows, strict=True):
            swept = await self._sweep(handler, has_rows=has_rows)
            counts |= {f"{handler.name}_{repair}": count for repair, count in swept.items()}
        terminated = await end_orphans(self._context, self._handlers)
        return counts | {f"{name}_terminated": count for name, count in terminated.items()}

    async def _sweep(
        self, handler: work_handlers.WorkHandler[work_handlers.RowT], *, has_rows: bool
    ) -> dict[str, int]:
        counts = dict.fromkeys(_REPAIRS, 0)
        async for row in self._open_rows(handler, has_rows=has_rows):
            try:
                action = await self.repair(handler, row)
            except Exception:
                # One row's trouble must not keep the sweep from the others.
                log.exception("a row could not be reconciled", id=str(row.id))
                continue
            if action is not None:
                counts[action] += 1
        for name, repair in handler.extras(self._context).items():
            counts[name] = await repair()
        return counts

    async def _open_rows(
        self, handler: work_handlers.WorkHandler[work_handlers.RowT], *, has_rows: bool
    ) -> AsyncIterator[work_handlers.RowT]:
        last: Id | None = None
        while has_rows and (rows := await self._open_rows_after(handler, last)):
            for row in rows:
                yield row
            last = rows[-1].id

    async def _open_rows_after(
        self, handler: work_handlers.WorkHandler[work_handlers.RowT], last: Id | None
    ) -> Sequence[work_handlers.RowT]:
        """The next open rows in the order of their ids, none when there are no more."""
        async with self._context.database.reading() as work:
            id_ = handler.kind.table.c.id
            before = work.now - self._context.grace
            statement = _open(handler, before).order_by(id_).limit(self._batch)
            if last is not None:
                statement = statement.where(id_ > last)
            return await work.rows(statement, of=handler.row)

    async def repair(
        self,
        handler: work_handlers.WorkHandler[work_handlers.RowT],
        row: work_handlers.RowT,
    ) -> str | None:
        """Make a row and its execution agree; returns the repair, or None."""
        reason = handler.abandoned(row)
        if reason is not None:
            return await self._close(
                handler,
                row,
                work_handlers.AbnormalEnd(work_handlers.EndKind.CANCELLED, reason),
            )
        execution = await handler.describe(self._context.client, row)
        match handler.judge(row, execution):
            case work_handlers.Verdict.RESTART:
                async with self._context.database.transaction() as work:
                    await handler.restart(work, row, execution)
                return "restarted"
            case work_handlers.Verdict.CLOSE:
                end = _GONE if execution is None else _ENDS.get(execution.status, _DIED)
                return await self._close(handler, row, end)
            case _:
                return None if execution is None else _poisoned(row, execution)

    async def _close(
        self,
        handler: work_handlers.WorkHandler[work_handlers.RowT],
        row: work_handlers.RowT,
        end: work_handlers.AbnormalEnd,
    ) -> str | None:
        return "closed" if await handler.close(self._context, row, end) else None


def _open(
    handler: work_handlers.WorkHandler[Any], before: datetime | sa.ColumnElement[datetime]
) -> sa.Select[Any]:
    """The open rows accepted before a moment, without an undelivered or paused start."""
    kind, columns = handler.kind, handler.kind.table.c
    undelivered = sa.exists().where(
        outbox.c.subject_id == columns.id, outbox.c.intent == Intent.START
    )
    return handler.rows().where(
        kind.is_open, columns[kind.accepted_column] < before, ~undelivered, ~is_resting(columns.id)
    )


def _poisoned(row: work_handlers.WorkRow, found: work_handlers.Execution) -> str | None:
    """Report work whose workflow task fails again and again; it continues once its code is
    repaired.
    """
    if found.attempt < POISONED:
        return None
    log.error("a workflow task keeps failing", id=str(row.id), attempt=found.attempt)
    return "poisoned"


_wait = run_wait.c
_RUN = automation_run.c.id == _wait.run_id
_UNDELIVERED = sa.exists().where(
    outbox.c.subject_id == _wait.run_id, outbox.c.intent == Intent.SIGNAL
)
_other, _node = run_wait.alias("other"), node_run.c
_NODE_OF_OTHER = sa.and_(
    _node.run_id == _other.c.run_id,
    _node.node_id == _other.c.node_id,
    _node.scope_key == _other.c.scope_key,
)


class _ResolvedWait(HostedWait, Protocol):
    """A resolved wait; `undelivered` says that a node of its run still waits for the resolution."""

    undelivered: bool


async def resend_signals(context: work_handlers.SweepContext) -> int:
    """Signal waits that ended longer ago than `grace` to their executions again; returns their
    number.

    Only for runs without progress whose execution has handled all its signals: else it may still
    reach the wait.
    """
    resent = 0
    async with context.database.transaction() as work:
        waits = await _resolved(work, context)
    for workflow_id, hosted in groupby(waits, attrgetter("workflow_id")):
        try:
            found = await work_handlers.describe_execution(context.client, workflow_id)
        except RPCError:
            # The next sweep comes back to it.
            log.warning("an execution could not be asked", workflow=workflow_id)
            continue
        lost = [wait for wait in hosted if _stands_still(wait, found)]
        async with context.database.transaction() as work:
            # By the outbox, like the signal that was lost.
            await wake_node(work, lost)
        resent += len(lost)
    return resent


def _stands_still(wait: _ResolvedWait, found: work_handlers.Execution | None) -> bool:
    if found is None or not found.sleeps:
        return False
    return wait.undelivered or not found.busy


async def _resolved(
    work: UnitOfWork, context: work_handlers.SweepContext
) -> Sequence[_ResolvedWait]:
    """The resolved waits of runs that may be stuck, grouped by execution."""
    before = work.now - context.grace
    undelivered = sa.exists().where(
        _other.c.run_id == _wait.run_id,
        _other.c.resolved_at < before,
        _NODE_OF_OTHER,
        _node.status == NodeStatus.WAITING,
    )
    overdue = sa.exists().where(
        _node.run_id == _wait.run_id, _node.status == NodeStatus.WAITING, _node.due_at < before
    )
    names = ("workspace_id", "run_id", "node_id", "scope_key", "workflow_id")
    stands: sa.ColumnElement[bool] = sa.or_(
        undelivered, overdue, automation_run.c.status == RunStatus.RUNNING
    )
    return await work.rows(
        sa.select(*(_wait[name] for name in names), undelivered.label("undelivered"))
        .select_from(run_wait.join(automation_run, _RUN))
        .where(
            automation_run.c.status.in_(OPEN_RUN),
            _wait.workflow_id.is_not(None),
            _wait.resolved_at < before,
            ~_UNDELIVERED,
            stands,
        )
        .order_by(_wait.workflow_id),
        of=_ResolvedWait,
    )


TURNS = 20
"""Sweeps after which each schedule is compared in full, even where the list shows no difference."""
TURN_SECONDS = 30
LISTED_PARTS = 10
"""Calendars and intervals of a schedule that Temporal's list shows at most."""

Listed = dict[str, ScheduleListDescription]


class ScheduleMaintenance:
    """Sweeps over all schedules.

    Temporal's list lags and is incomplete, so it only finds candidates: each of them is
    synchronized as if its intent had just been delivered.
    """

    def __init__(
        self, database: Database, client: Client, schedules: Schedules, *, batch: int = BATCH
    ) -> None:
        self._database = database
        self._client = client
        self._schedules = schedules
        self._batch = batch

    @activity.defn(name="reconcile_schedules")
    async def reconcile_schedules(self) -> dict[str, int]:
        """One sweep. Safe to repeat: a schedule that is right is left alone."""
        counts = {"synchronized": 0, "removed": 0}
        listed = await self._listed(list(SCHEDULES))
        for registered in SCHEDULES.values():
            await self._sweep(registered.kind, listed, counts)
        for schedule_id in listed:
            if parse_id(schedule_id.rpartition("/")[2]) is not None:
                with _one_at_a_time(schedule_id):
                    await self._schedules.synchronize(schedule_id)
                    counts["removed"] += 1
        return counts

    async def _sweep(self, kind: ScheduleTable, listed: Listed, counts: dict[str, int]) -> None:
        """Compare the rows of a kind with `listed`, and leave schedules without a row in it."""
        turn = int(activity.info().started_time.timestamp()) // TURN_SECONDS % TURNS
        async for row in self._desired(kind):
            schedule_id = kind.workflow_kind.workflow_id(row.id)
            found = listed.pop(schedule_id, None)
            with _one_at_a_time(schedule_id):
                wanted = kind.read(row)
                its_turn = row.id.int % TURNS == turn
                if its_turn or _is_stale(wanted, utc_now()) or not _matches(wanted, found):
                    await self._schedules.synchronize(schedule_id)
                    counts["synchronized"] += 1

    async def _listed(self, kinds: Sequence[WorkflowKind]) -> Listed:
        """The schedules of the kinds that Temporal lists, by their ids."""
        names = ", ".join(f"'{kind}'" for kind in kinds)
        query = f"{SearchAttribute.RUN_KIND} IN ({names})"
        listed: Listed = {}
        async for found in await self._client.list_schedules(query):
            listed[found.id] = found
        return listed

    async def _desired(self, kind: ScheduleTable) -> AsyncIterator[ScheduledRow]:
        last: Id | None = None
        while rows := await self._desired_after(kind, last):
            for row in rows:
                yield row
            last = rows[-1].id

    async def _desired_after(self, kind: ScheduleTable, last: Id | None) -> Sequence[ScheduledRow]:
        async with self._database.reading() as work:
            return await all_scheduled(work, kind, last, self._batch)


@contextmanager
def _one_at_a_time(schedule_id: str) -> Iterator[None]:
    """One schedule's trouble does not keep the sweep from the others."""
    try:
        yield
    except Exception:
        log.exception("a schedule could not be reconciled", schedule_id=schedule_id)


def _is_stale(wanted: DesiredSchedule, now: datetime) -> bool:
    """True when the row says something else of the next run than its schedule does."""
    return wanted.next_run_at != wanted.next_after(now)


def _matches(wanted: DesiredSchedule, found: ScheduleListDescription | None) -> bool:
    """As far as the list shows; a schedule that never fires again may be missing from it."""
    if found is None:
        return wanted.timing.timetable.next_after(utc_now()) is None
    shown: Any = found.schedule
    return (
        shown is not None
        and (shown.state.paused, shown.state.note) == (wanted.paused is not None, note_of(wanted))
        and shown.spec == _listed_spec(spec_of(wanted.timing, utc_now()))
    )


def _listed_spec(spec: ScheduleSpec) -> ScheduleSpec:
    """The times as Temporal's list shows them: the first few of each form."""
    calendars, intervals = spec.calendars[:LISTED_PARTS], spec.intervals[:LISTED_PARTS]
    return replace(spec, calendars=calendars, intervals=intervals)

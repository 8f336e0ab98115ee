"""The reconciler: rows and executions that drifted apart are brought together (promise I7).

Temporal is asked about each open row by `describe`, which is strongly consistent; visibility only
finds candidates, and the row under its lock decides.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Row, and_, exists, select
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus

from activities.maintenance.executions import Execution, describe_execution
from activities.maintenance.orphans import end_orphans
from activities.maintenance.reconciling import reconcile
from activities.maintenance.unheard import tell_again
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.tables import action_run
from models.automation.automation_runs import deadlocks, execution, slots
from models.automation.automation_runs.cancellation import cancel_runs
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.start_intents import append_starts
from models.automation.automation_runs.tables import automation_run
from models.core.base import Id
from runtime.database import Database
from runtime.families import Family
from runtime.outbox import Intent, outbox

log = structlog.get_logger()

GRACE = timedelta(seconds=20)
"""A row or execution younger than this is still on its way."""
BATCH = 500
"""Rows read at once."""
POISONED = 5
"""Tries of one workflow task after which a run is reported: code must change, or be put back."""

_ENDS = {
    WorkflowExecutionStatus.CANCELED: (RunStatus.CANCELLED, "Cancelled in Temporal."),
    WorkflowExecutionStatus.TERMINATED: (RunStatus.FAILED, "Terminated in Temporal."),
    WorkflowExecutionStatus.TIMED_OUT: (RunStatus.TIMED_OUT, "The execution timed out."),
    WorkflowExecutionStatus.COMPLETED: (
        RunStatus.FAILED,
        "The execution ended without writing its result.",
    ),
}
_DIED = (RunStatus.FAILED, "The execution failed.")
_GONE = (RunStatus.FAILED, "The execution is gone from Temporal.")

_run = automation_run.c
_caller = automation_run.alias("caller")
_NO_LONGER_AWAITED = exists().where(
    _caller.c.id == _run.parent_run_id, _caller.c.status.not_in(OPEN_RUN)
)
_ACTION_ENDED = exists().where(
    action_run.c.id == _run.parent_run_id, action_run.c.status != ActionRunStatus.STARTED
)
_UNDELIVERED = exists().where(outbox.c.subject_id == _run.id, outbox.c.intent == Intent.START)
_IN_LINE = and_(_run.admitted_at.is_(None), _run.parent_run_id.is_(None))
"""Runs that have no execution yet because they wait for a slot."""


class MaintenanceActivities:
    """Sweeps over open runs and open executions."""

    def __init__(
        self,
        database: Database,
        client: Client,
        *,
        grace: timedelta = GRACE,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._client = client
        self._grace = grace
        self._batch = batch

    @activity.defn(name="reconcile")
    async def reconcile(self) -> dict[str, int]:
        """One sweep. Safe to repeat: every repair is a conditional update or idempotent by id."""
        repairs = ("restarted", "closed", "poisoned")
        counts = await reconcile(self._open_runs_after, self._repair, repairs)
        counts["admitted"] = await self._admit()
        counts["refused"] = await self._break_circles()
        counts["told"] = await tell_again(self._database, self._client, self._grace)
        counts["terminated"] = await end_orphans(self._database, self._client, self._grace)
        return counts

    async def _open_runs_after(self, last: Id | None) -> Sequence[Row[Any]]:
        async with self._database.transaction() as work:
            statement = (
                select(
                    _run.id,
                    _run.workspace_id,
                    _run.status,
                    _run.parent_run_id,
                    _run.admitted_at,
                    _NO_LONGER_AWAITED.label("no_longer_awaited"),
                    _ACTION_ENDED.label("action_ended"),
                )
                .where(
                    _run.status.in_(OPEN_RUN),
                    _run.created_at < work.now - self._grace,
                    ~_UNDELIVERED,
                    ~_IN_LINE,
                )
                .order_by(_run.id)
                .limit(self._batch)
            )
            return await work.rows(statement if last is None else statement.where(_run.id > last))

    async def _repair(self, row: Row[Any]) -> str | None:
        if row.no_longer_awaited:
            return await self._cancel(row)
        found = await describe_execution(self._client, Family.AUTOMATION_RUN.workflow_id(row.id))
        if found is not None and found.status is WorkflowExecutionStatus.RUNNING:
            if found.sleeps and row.status == RunStatus.QUEUED and row.admitted_at is not None:
                # It has not heard that it got a slot.
                return await self._restart(row)
            return _poisoned(row, found)
        if found is None and row.action_ended:
            return await self._cancel(row)
        if found is None and row.status == RunStatus.QUEUED:
            # The run that waits for another starts it, as long as it is open itself.
            return None if row.parent_run_id is not None else await self._restart(row)
        return await self._close(row, found)

    async def _cancel(self, row: Row[Any]) -> str | None:
        async with self._database.transaction() as work:
            error = "The run that waited for it has ended."
            cancelled = await cancel_runs(work, row.workspace_id, [row.id], error=error)
        return "closed" if cancelled else None

    async def _restart(self, row: Row[Any]) -> str:
        async with self._database.transaction() as work:
            await append_starts(work, [row.id])
        return "restarted"

    async def _close(self, row: Row[Any], found: Execution | None) -> str | None:
        end, reason = _GONE if found is None else _ENDS.get(found.status, _DIED)
        async with self._database.transaction() as work:
            closed = await execution.abandon(work, row.id, end, reason)
        return "closed" if closed else None

    async def _admit(self) -> int:
        """Give free slots to runs that wait for one; how many got one.

        Every end hands its slot on, so there is something to do only after a limit was raised, or
        a row was changed by hand.
        """
        admitted = 0
        async with self._database.transaction() as work:
            in_line = await work.rows(
                select(_run.automation_id, _run.concurrency_key)
                .where(
                    _run.status.in_(OPEN_RUN),
                    _run.admitted_at.is_(None),
                    _run.concurrency_key.is_not(None),
                )
                .distinct()
                .order_by(_run.automation_id, _run.concurrency_key)
            )
        for line in in_line:
            activity.heartbeat()
            async with self._database.transaction() as work:
                await slots.lock(work, line.automation_id, line.concurrency_key)
                admitted += len(await slots.hand_on(work, line.automation_id, line.concurrency_key))
        return admitted

    async def _break_circles(self) -> int:
        """Refuse runs that would wait for their own callers for ever; how many."""
        async with self._database.snapshot() as work:
            found = await deadlocks.find(work)
        refused = 0
        for run in found:
            activity.heartbeat()
            async with self._database.transaction() as work:
                refused += await deadlocks.refuse(work, run)
        return refused


def _poisoned(row: Row[Any], found: Execution) -> str | None:
    """Report a run whose workflow task fails again and again; it goes on when its code can."""
    if found.attempt < POISONED:
        return None
    log.error("the workflow task of a run keeps failing", run_id=str(row.id), attempt=found.attempt)
    return "poisoned"

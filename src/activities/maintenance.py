"""The reconciler: rows and executions that drifted apart are brought together (promise I7).

Temporal is asked about each open row by `describe`, which is strongly consistent; visibility only
finds candidates, and the row under its lock decides.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Row, exists, select
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from activities.executions import execution_status
from models.automation_runs import execution
from models.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation_runs.tables import automation_run
from models.base import Id
from runtime.database import Database
from runtime.families import Family
from runtime.ids import parse_id
from runtime.outbox import Intent, append, outbox

log = structlog.get_logger()

GRACE = timedelta(seconds=20)
"""A row or execution younger than this is still on its way."""
BATCH = 500
"""Rows read at once."""

_ENDS = {
    WorkflowExecutionStatus.CANCELED: (RunStatus.CANCELLED, "Cancelled in Temporal."),
    WorkflowExecutionStatus.TERMINATED: (RunStatus.FAILED, "Terminated in Temporal."),
    WorkflowExecutionStatus.TIMED_OUT: (RunStatus.TIMED_OUT, "The execution timed out."),
    WorkflowExecutionStatus.FAILED: (RunStatus.FAILED, "The execution failed."),
    WorkflowExecutionStatus.COMPLETED: (
        RunStatus.FAILED,
        "The execution ended without writing its result.",
    ),
}


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
        counts = {"restarted": 0, "closed": 0, "terminated": 0}
        async for run_id, workspace_id, status in self._open_runs():
            activity.heartbeat()
            try:
                repair = await self._repair(run_id, workspace_id, status)
            except Exception:
                # One row's trouble must not keep the sweep from the others.
                log.exception("a run could not be reconciled", run_id=str(run_id))
                continue
            if repair is not None:
                counts[repair] += 1
        counts["terminated"] = await self._terminate_orphans()
        return counts

    async def _open_runs(self) -> AsyncIterator[tuple[Id, Id, str]]:
        last: Id | None = None
        while rows := await self._open_runs_after(last):
            for row in rows:
                yield row.id, row.workspace_id, row.status
            last = rows[-1].id

    async def _open_runs_after(self, last: Id | None) -> Sequence[Row[Any]]:
        run = automation_run.c
        undelivered = exists().where(outbox.c.subject_id == run.id, outbox.c.intent == Intent.START)
        async with self._database.transaction() as work:
            statement = (
                select(run.id, run.workspace_id, run.status)
                .where(
                    run.status.in_(OPEN_RUN),
                    run.created_at < work.now - self._grace,
                    ~undelivered,
                )
                .order_by(run.id)
                .limit(self._batch)
            )
            return await work.rows(statement if last is None else statement.where(run.id > last))

    async def _repair(self, run_id: Id, workspace_id: Id, status: str) -> str | None:
        workflow_id = Family.AUTOMATION_RUN.workflow_id(run_id)
        found = await execution_status(self._client, workflow_id)
        if found is WorkflowExecutionStatus.RUNNING:
            return None
        if found is None and status == RunStatus.QUEUED:
            await self._restart(run_id, workspace_id)
            return "restarted"
        end, reason = (
            (RunStatus.FAILED, "The execution is gone from Temporal.")
            if found is None
            else _ENDS.get(found, _ENDS[WorkflowExecutionStatus.FAILED])
        )
        async with self._database.transaction() as work:
            closed = await execution.abandon(work, run_id, end, reason)
        return "closed" if closed else None

    async def _restart(self, run_id: Id, workspace_id: Id) -> None:
        async with self._database.transaction() as work:
            await append(
                work,
                intent=Intent.START,
                family=Family.AUTOMATION_RUN,
                workspace_id=workspace_id,
                subject_id=run_id,
                facts={"summary": "Restarted by the reconciler"},
            )

    async def _terminate_orphans(self) -> int:
        """Terminate open executions whose row does not exist, cancel those whose row is closed."""
        terminated = 0
        started_before = (activity.info().started_time - self._grace).isoformat()
        query = (
            "WorkflowType = 'AutomationRun' AND ExecutionStatus = 'Running'"
            f" AND StartTime < '{started_before}'"
        )
        async for listed in self._client.list_workflows(query):
            activity.heartbeat()
            try:
                terminated += await self._end_orphan(listed.id)
            except RPCError:
                # It has ended meanwhile, or the next sweep comes back to it.
                log.warning("an execution could not be reconciled", workflow=listed.id)
        return terminated

    async def _end_orphan(self, workflow_id: str) -> bool:
        """Whether the execution was terminated."""
        run_id = parse_id(workflow_id.rpartition("/")[2])
        async with self._database.transaction() as work:
            status = await work.scalar(
                select(automation_run.c.status).where(automation_run.c.id == run_id)
            )
        handle = self._client.get_workflow_handle(workflow_id)
        if status is None:
            await handle.terminate(reason="No run of this id exists.")
            return True
        if status not in OPEN_RUN:
            await handle.cancel()
        return False

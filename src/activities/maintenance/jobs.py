"""The reconciler of jobs: what was never started is started, what died is taken back (I7)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, exists, select
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus

from activities.jobs.transactions import DONE, MORE, JobActivities
from activities.maintenance.automation_runs import BATCH, GRACE
from activities.maintenance.executions import execution_status
from activities.maintenance.reconciling import reconcile
from models.core.base import Id
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.tables import job
from runtime.database import Database
from runtime.families import Family
from runtime.outbox import Intent, append, outbox


class JobMaintenance:
    """Sweeps over open jobs."""

    def __init__(
        self,
        database: Database,
        client: Client,
        jobs: JobActivities,
        *,
        grace: timedelta = GRACE,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._client = client
        self._jobs = jobs
        self._grace = grace
        self._batch = batch

    @activity.defn(name="reconcile_jobs")
    async def reconcile_jobs(self) -> dict[str, int]:
        """One sweep. Safe to repeat: a start is idempotent by id, and an undo by its own lock."""
        return await reconcile(self._open_after, self._repair, ("restarted", "taken_back"))

    async def _open_after(self, last: Id | None) -> Sequence[Row[Any]]:
        undelivered = exists().where(
            outbox.c.subject_id == job.c.id, outbox.c.intent == Intent.START
        )
        async with self._database.transaction() as work:
            statement = (
                select(job.c.id, job.c.workspace_id, job.c.family, job.c.status, job.c.subject_id)
                .where(
                    job.c.status.in_(OPEN_JOB),
                    job.c.created_at < work.now - self._grace,
                    ~undelivered,
                )
                .order_by(job.c.id)
                .limit(self._batch)
            )
            return await work.rows(statement if last is None else statement.where(job.c.id > last))

    async def _repair(self, row: Row[Any]) -> str | None:
        family = Family(row.family)
        status = await execution_status(self._client, family.workflow_id(row.id))
        if status is WorkflowExecutionStatus.RUNNING:
            return None
        if status is None and row.status == JobStatus.QUEUED:
            await self._restart(row, family)
            return "restarted"
        cancelled = status is WorkflowExecutionStatus.CANCELED
        end = JobStatus.CANCELLED if cancelled else JobStatus.FAILED
        while (outcome := await self._jobs.undo_job(str(row.id), end.value)) == MORE:
            activity.heartbeat()
        return "taken_back" if outcome == DONE else None

    async def _restart(self, row: Row[Any], family: Family) -> None:
        async with self._database.transaction() as work:
            await append(
                work,
                intent=Intent.START,
                family=family,
                workspace_id=row.workspace_id,
                subject_id=row.id,
                request={
                    "summary": "Restarted by the reconciler",
                    "resourceId": str(row.subject_id),
                },
            )

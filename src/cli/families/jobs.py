"""Jobs, as a family of work: what one that died has done is taken back."""

from typing import Any, ClassVar, Protocol, Self

from sqlalchemy import Select, select
from typing_extensions import override

from activities.jobs.transactions import DONE, MORE, JobActivities
from activities.maintenance.executions import Execution
from activities.maintenance.families import (
    AbnormalEnd,
    Activities,
    EndKind,
    SweepContext,
    WorkFamily,
    WorkRow,
    next_restart,
)
from activities.parts import Parts
from cli.families.job_families import JOB_FAMILIES, chunks_of
from models.core.base import Id
from models.messages.jobs.commands import hold_job, record_failure, start_job
from models.messages.jobs.lifecycle import JOBS
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.tables import job
from runtime.database import UnitOfWork
from runtime.families import Family, Queue


class JobRow(WorkRow, Protocol):
    """A job, without what its chunks keep."""

    family: str
    subject_id: Id


class Jobs(WorkFamily[JobRow]):
    """Jobs of every family."""

    name, kind, row = "jobs", JOBS, JobRow
    workflows: ClassVar = {name: family.workflow for name, family in JOB_FAMILIES.items()}

    def __init__(self, jobs: JobActivities) -> None:
        self._jobs = jobs

    @override
    @classmethod
    def of(cls, parts: Parts) -> Self:
        return cls(JobActivities(parts.database, chunks_of(parts)))

    @override
    def activities(self, parts: Parts) -> Activities:
        return {
            Queue.IO: [self._jobs.advance_job],
            Queue.BULK: [self._jobs.advance_job, self._jobs.undo_job],
        }

    @override
    def rows(self) -> Select[Any]:
        return select(job.c.id, job.c.workspace_id, job.c.family, job.c.status, job.c.subject_id)

    @override
    def workflow_id(self, row: JobRow) -> str:
        return Family(row.family).workflow_id(row.id)

    @override
    async def restart(self, work: UnitOfWork, row: JobRow, latest: Execution | None) -> None:
        summary, family = "Restarted by the reconciler", Family(row.family)
        restarts = next_restart(latest)
        await start_job(work, family, row.workspace_id, row.id, row.subject_id, summary, restarts)

    @override
    async def close(self, context: SweepContext, row: JobRow, end: AbnormalEnd) -> bool:
        cancelled = end.kind is EndKind.CANCELLED
        if not cancelled:
            async with context.database.transaction() as work:
                held = await hold_job(work, row.id)
                if held is not None and held.error is None:
                    await record_failure(work, row.id, end.reason, "interrupted")
        status = JobStatus.CANCELLED if cancelled else JobStatus.FAILED
        while (outcome := await self._jobs.undo_job(str(row.id), status.value)) == MORE:
            pass
        return outcome == DONE

"""Accepting jobs, the guarded writes of their executions, and their purge.

See architecture.md#final-statuses.
"""

from datetime import datetime

from sqlalchemy import delete, select

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.bounds import require_place
from models.core.lifecycle import commands as lifecycle
from models.core.purging import MAX_ROWS, purge
from models.messages.jobs.queries import JobRow
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.tables import JOBS, job
from runtime.database import UnitOfWork
from runtime.ids import least_id
from runtime.temporal.families import Family
from runtime.temporal.outbox import AWAITED, StartRequest


async def accept_job(
    work: UnitOfWork,
    actor: Actor,
    family: Family,
    job_id: Id,
    subject_id: Id,
    *,
    summary: str,
    input: JsonObject | None = None,  # noqa: A002  # the column's name
) -> bool:
    """Record a job and its start; False when a job of this id was accepted before.

    `summary` is shown to operators and holds no user data. Raises `TooMuchOpenError`.
    """
    if not await record_job(
        work, actor.workspace_id, actor.user_id, family, job_id, subject_id, input
    ):
        return False
    await require_place(work, actor, JOBS, family, JOBS.table.c.family == family.value)
    await start_job(work, family, actor.workspace_id, job_id, subject_id, summary)
    return True


async def record_job(
    work: UnitOfWork,
    workspace_id: Id,
    user_id: Id,
    family: Family,
    job_id: Id,
    subject_id: Id,
    input: JsonObject | None = None,  # noqa: A002  # the column's name
) -> bool:
    """Record a job that the caller has executed; False when one of this id was accepted before."""
    row = {
        "id": job_id,
        "workspace_id": workspace_id,
        "family": family.value,
        "subject_id": subject_id,
        "actor_user_id": user_id,
        "input": input or {},
        "progress": {},
    }
    return await lifecycle.accept(work, JOBS, row)


def start_request(subject_id: Id, summary: str, source: str = "api") -> StartRequest:
    """The request that starts a job in Temporal; `summary` holds no user data."""
    return {
        "summary": summary,
        "resourceId": str(subject_id),
        "source": source,
        "weight": AWAITED,
    }


async def start_job(
    work: UnitOfWork,
    family: Family,
    workspace_id: Id,
    job_id: Id,
    subject_id: Id,
    summary: str,
    restarts: int = 0,
) -> None:
    """Have the execution of an accepted job started."""
    request = start_request(subject_id, summary)
    await lifecycle.start(work, family, workspace_id, job_id, request, restarts)


async def hold_job(work: UnitOfWork, job_id: Id) -> JobRow | None:
    """The job, locked and marked as running; None when it is closed.

    Every chunk takes this lock first: a chunk executed twice at once waits, then continues from the
    progress of the other.
    """
    row = await lifecycle.hold(work, JOBS, job_id, of=JobRow)
    if row is not None and row.status == JobStatus.QUEUED:
        await lifecycle.move(work, JOBS, job_id, JobStatus.RUNNING, started_at=work.now)
    return row


async def record_progress(work: UnitOfWork, job_id: Id, progress: JsonObject) -> None:
    """Record where the next chunk of a held job begins."""
    await lifecycle.record_progress(work, JOBS, job_id, progress=progress)


async def forget_input(work: UnitOfWork, job_id: Id) -> None:
    """Remove what a held job was asked with, when that must not outlast it."""
    await lifecycle.record_progress(work, JOBS, job_id, input={})


async def record_failure(work: UnitOfWork, job_id: Id, error: str, error_code: str) -> None:
    """Record why a held job cannot continue; it is closed when its effects are reverted."""
    await lifecycle.record_progress(work, JOBS, job_id, error=error, error_code=error_code)


async def close_job(
    work: UnitOfWork, job_id: Id, status: JobStatus, *, result: JsonObject | None = None
) -> bool:
    """End an open job for ever; False when it was closed before."""
    return bool(await lifecycle.finish(work, JOBS, [job_id], status, result=result))


async def cancel_job(work: UnitOfWork, job: JobRow) -> None:
    """Cancel an open job: at once before it begins, else when its effects are reverted."""
    this = JOBS.table.c.id == job.id, JOBS.table.c.status == JobStatus.QUEUED
    cancelled = JOBS.moving(JobStatus.CANCELLED).where(*this).values(completed_at=work.now)
    await work.execute(cancelled)
    work.answered.add(job.id)
    family = Family(job.family)
    await lifecycle.cancel_executions(work, family, job.workspace_id, [job.id])


async def forget_job(work: UnitOfWork, workspace_id: Id, job_id: Id) -> None:
    """Remove a job that has ended, whose result is not to be read later."""
    await work.execute(
        delete(JOBS.table).where(
            JOBS.table.c.workspace_id == workspace_id, JOBS.table.c.id == job_id, ~JOBS.is_open
        )
    )


async def purge_jobs(
    work: UnitOfWork, before: datetime, limit: int = MAX_ROWS, *, family: Family | None = None
) -> int:
    """Remove jobs that ended before a moment, of a family or of all; what they did stays.

    Returns the number of removed rows, at most `limit`; call it until that is 0.
    """
    old = (
        select(job.c.id)
        .where(
            # Accepted before it ended: the oldest ids are all that is looked at.
            job.c.id < least_id(before),
            job.c.status.not_in(OPEN_JOB),
            job.c.completed_at < before,
            *([] if family is None else [job.c.family == family.value]),
        )
        .order_by(job.c.id)
    )
    return await purge(work, job, old, limit)

"""Accepting jobs, and the guarded writes of those who execute them (promise I3)."""

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.tables import job
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.outbox import Intent, StartRequest, append


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

    `summary` is shown to operators and holds no user data.
    """
    accepted = await work.first(
        insert(job)
        .values(
            id=job_id,
            workspace_id=actor.workspace_id,
            family=family.value,
            subject_id=subject_id,
            actor_user_id=actor.user_id,
            status=JobStatus.QUEUED.value,
            input=input or {},
            progress={},
            created_at=work.now,
        )
        .on_conflict_do_nothing(index_elements=["id"])
        .returning(job.c.id)
    )
    if accepted is None:
        return False
    request: StartRequest = {
        "summary": summary,
        "resourceId": str(subject_id),
        "source": "api",
        "priority": 2,
    }
    await append(
        work,
        intent=Intent.START,
        family=family,
        workspace_id=actor.workspace_id,
        subject_id=job_id,
        request=request,
    )
    return True


async def hold_job(work: UnitOfWork, job_id: Id) -> Any | None:
    """The job, locked and marked as running; None when it is closed.

    Every chunk takes this lock first: a chunk executed twice at once waits, then goes on from the
    progress of the other.
    """
    row = await work.first(
        select(job).where(job.c.id == job_id, job.c.status.in_(OPEN_JOB)).with_for_update()
    )
    if row is not None and row.status == JobStatus.QUEUED:
        await work.execute(
            update(job)
            .where(job.c.id == job_id)
            .values(status=JobStatus.RUNNING.value, started_at=work.now)
        )
    return row


async def record_progress(work: UnitOfWork, job_id: Id, progress: JsonObject) -> None:
    """Where the next chunk of a held job begins."""
    await work.execute(update(job).where(job.c.id == job_id).values(progress=progress))


async def record_failure(work: UnitOfWork, job_id: Id, error: str, error_code: str) -> None:
    """Why a held job cannot go on; it is closed when what it did was taken back."""
    await work.execute(
        update(job).where(job.c.id == job_id).values(error=error, error_code=error_code)
    )


async def close_job(
    work: UnitOfWork, job_id: Id, status: JobStatus, *, result: JsonObject | None = None
) -> bool:
    """End an open job for ever; False when it was closed before."""
    closed = await work.execute(
        update(job)
        .where(job.c.id == job_id, job.c.status.in_(OPEN_JOB))
        .values(status=status.value, result=result, completed_at=work.now)
    )
    return closed.rowcount > 0

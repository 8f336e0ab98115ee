"""Deleting jobs that ended long enough ago."""

from datetime import datetime

from sqlalchemy import select

from models.core.purging import MAX_ROWS, purge
from models.messages.jobs.rules import OPEN_JOB
from models.messages.jobs.tables import job
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.ids import least_id


async def purge_jobs(
    work: UnitOfWork, before: datetime, limit: int = MAX_ROWS, *, family: Family | None = None
) -> int:
    """Remove jobs that ended before a moment, of a family or of all; what they did stays.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
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

"""Forgetting runs that ended long enough ago."""

from datetime import datetime

from sqlalchemy import select

from models.automation_runs.rules import OPEN_RUN
from models.automation_runs.tables import automation_run
from models.purging import MAX_ROWS, purge
from runtime.database import UnitOfWork
from runtime.ids import least_id


async def purge_runs(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove runs that ended before a moment, with what is known of their nodes.

    The versions they executed stay. Gives how many rows were removed, at most `limit`; to be
    called until it is 0.
    """
    old = (
        select(automation_run.c.id)
        .where(
            # Accepted before it ended: the oldest ids are all that is looked at.
            automation_run.c.id < least_id(before),
            automation_run.c.status.not_in(OPEN_RUN),
            automation_run.c.completed_at < before,
        )
        .order_by(automation_run.c.id)
    )
    return await purge(work, automation_run, old, limit)

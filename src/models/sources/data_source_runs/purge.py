"""Deleting runs that ended long enough ago, and before them what they left out.

The records they wrote stay.
"""

from datetime import datetime

from sqlalchemy import and_, delete, select, tuple_

from models.core.purging import MAX_ROWS, purge
from models.sources.data_source_runs.lifecycle import DATA_SOURCE_RUNS
from models.sources.data_source_runs.rules import REVERTIBLE
from models.sources.data_source_runs.tables import data_source_run, run_rejection
from runtime.database import UnitOfWork


async def purge_data_source_runs(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove runs that ended before a moment.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    old = (
        select(data_source_run.c.id)
        .where(
            ~DATA_SOURCE_RUNS.is_open,
            data_source_run.c.completed_at < before,
        )
        .order_by(data_source_run.c.completed_at)
    )
    return await purge(work, data_source_run, old, limit)


async def purge_rejections(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Remove what was left out by runs that cannot be reverted any more.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    rejection, run = run_rejection.c, data_source_run.c
    key = (rejection.workspace_id, rejection.run_id, rejection.place)
    old = (
        select(*key)
        .join(
            data_source_run,
            and_(run.workspace_id == rejection.workspace_id, run.id == rejection.run_id),
        )
        .where(run.completed_at < work.now - REVERTIBLE)
        .limit(limit)
    )
    removed = await work.execute(delete(run_rejection).where(tuple_(*key).in_(old)))
    return removed.rowcount

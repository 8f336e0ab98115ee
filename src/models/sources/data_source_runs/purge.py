"""Deleting runs that ended long enough ago; what they brought in stays."""

from datetime import datetime

from sqlalchemy import select

from models.core.purging import MAX_ROWS, purge
from models.sources.data_source_runs.lifecycle import DATA_SOURCE_RUNS
from models.sources.data_source_runs.tables import data_source_run
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

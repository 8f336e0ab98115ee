"""Forgetting runs of actions that ended long enough ago."""

from datetime import datetime

from sqlalchemy import select

from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.tables import action_run
from models.core.purging import MAX_ROWS, purge
from runtime.database import UnitOfWork


async def purge_action_runs(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove runs that ended before a moment, with their steps.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    old = (
        select(action_run.c.id)
        .where(
            action_run.c.status != ActionRunStatus.STARTED,
            action_run.c.completed_at < before,
        )
        .order_by(action_run.c.completed_at)
    )
    return await purge(work, action_run, old, limit)

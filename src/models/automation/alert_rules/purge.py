"""Deleting firings that ended long ago."""

from datetime import datetime

from sqlalchemy import delete, select

from models.automation.alert_rules.tables import alert_firing
from models.core.purging import MAX_ROWS
from runtime.database import UnitOfWork

_firing = alert_firing.c


async def purge_firings(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove up to `limit` firings that ended before a moment; how many. Repeat until 0."""
    old = (
        select(_firing.id)
        .where(_firing.resolved_at < before)
        .order_by(_firing.resolved_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return (await work.execute(delete(alert_firing).where(_firing.id.in_(old)))).rowcount

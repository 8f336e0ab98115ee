"""Deleting incidents that were closed long ago, and the runs of others that failed so long ago."""

from datetime import datetime

from sqlalchemy import delete, select

from models.automation.incidents.tables import incident, incident_run
from models.core.purging import MAX_ROWS, purge
from runtime.database import UnitOfWork


async def purge_incidents(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove runs that failed, and incidents that were closed, before a moment.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    old = (
        select(incident_run.c.run_id)
        .where(incident_run.c.failed_at < before)
        .order_by(incident_run.c.failed_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    gone = await work.execute(delete(incident_run).where(incident_run.c.run_id.in_(old)))
    if gone.rowcount:
        return gone.rowcount
    closed = select(incident.c.id).where(incident.c.closed_at < before)
    return await purge(work, incident, closed.order_by(incident.c.closed_at), limit)

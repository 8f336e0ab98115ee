"""Deleting deliveries that ended long enough ago, and the lines that nothing stands in."""

from datetime import datetime

from sqlalchemy import select

from models.core.purging import MAX_ROWS, purge
from models.messages.deliveries.lines import forget_unused_lines
from models.messages.deliveries.tables import delivery
from runtime.database import UnitOfWork


async def purge_deliveries(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove deliveries that ended before a moment.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    ended = delivery.c.completed_at
    old = select(delivery.c.id).where(ended < before).order_by(ended)
    return await purge(work, delivery, old, limit) or await forget_unused_lines(work)

"""Deleting entries that were discarded long enough ago (decisions C12)."""

from datetime import datetime

from sqlalchemy import select

from models.core.purging import MAX_ROWS, purge
from models.data.time_entries.rules.kinds import EntryStatus
from models.data.time_entries.tables import time_entry
from runtime.database import UnitOfWork


async def purge_discarded(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove entries that were discarded before a moment; what was completed stays for good.

    Gives how many rows were removed, at most `limit`; to be called until it is 0.
    """
    entry = time_entry.c
    old = (
        select(entry.id)
        .where(entry.status == EntryStatus.DISCARDED, entry.closed_at < before)
        .order_by(entry.closed_at, entry.id)
    )
    return await purge(work, time_entry, old, limit)

"""Emptying the trash of records: what was deleted long enough ago goes for good."""

from datetime import datetime

from sqlalchemy import select

from models.core.purging import MAX_ROWS, purge
from models.data.records.tables import record
from runtime.database import UnitOfWork


async def purge_records(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove records that went to the trash before a moment, with all that is theirs.

    Links, values of the side index, comments, contents and history go with them. Nothing follows
    from a record in the trash, so nothing is computed anew. Gives how many rows were removed, at
    most `limit`; to be called until it is 0.
    """
    old = (
        select(record.c.id)
        .where(record.c.deleted_at < before)
        .order_by(record.c.deleted_at, record.c.id)
    )
    return await purge(work, record, old, limit)

"""Numbers of records that cost as much with a million records as with one."""

from typing import Any

from sqlalchemy import BigInteger, Select, cast, delete, func, insert, select

from models.core.base import Id
from models.data.fields.joins import DATABASE, live_databases
from models.data.records.tables import record_count
from runtime.database import UnitOfWork

MERGED_AT_ONCE = 1_000
"""Databases whose counts one transaction merges."""

_TOTAL = cast(func.coalesce(func.sum(record_count.c.number), 0), BigInteger)


def number_of_records(workspace_id: Id) -> Select[Any]:
    """The number of a workspace's records outside the trash whose databases are outside it too."""
    return live_databases(workspace_id, _TOTAL).join(
        record_count, record_count.c.database_id == DATABASE.id
    )


async def merge_counts(work: UnitOfWork) -> int:
    """Make one row of the counts of some databases that have several; how many databases.

    Repeat until 0. What is written meanwhile is left to the next call.
    """
    several = (
        select(record_count.c.database_id)
        .group_by(record_count.c.database_id)
        .having(func.count() > 1)
        .limit(MERGED_AT_ONCE)
    )
    parts = (
        delete(record_count)
        .where(record_count.c.database_id.in_(several))
        .returning(record_count.c.database_id, record_count.c.number)
        .cte("part")
    )
    total = cast(func.sum(parts.c.number), BigInteger)
    merged = insert(record_count).from_select(
        ["database_id", "number"],
        select(parts.c.database_id, total).group_by(parts.c.database_id),
    )
    return len(await work.rows(merged.returning(record_count.c.id)))

"""Statements that change many rows of a table, each to values of its own."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Table, bindparam, update

from models.core.base import Id
from runtime.database import UnitOfWork


async def update_each(
    work: UnitOfWork, table: Table, changes: Sequence[tuple[Id, Mapping[str, object]]]
) -> None:
    """Write the same columns of the rows with these ids."""
    values = [{"this": row_id, **new} for row_id, new in changes]
    if values:
        names = [name for name in values[0] if name != "this"]
        await work.execute(
            update(table)
            .where(table.c.id == bindparam("this"))
            .values({name: bindparam(name) for name in names}),
            values,
        )

"""Statements over many rows: counted ids, copies, updates, first rows of each owner."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from models.core.base import Id
from runtime.database import UnitOfWork

_COUNTED_BITS = 32
"""Bits of an id that count the rows; 42 random ones stay."""


async def first_id(work: UnitOfWork) -> int:
    """The first of very many ids, from the database's clock; the others count on from it.

    PostgreSQL asks for random bits for each UUIDv7, which takes it longer than to write the row.
    """
    made: Id = await work.scalar(sa.select(sa.func.uuidv7(type_=sa.Uuid)))
    return made.int >> _COUNTED_BITS << _COUNTED_BITS


def counted_id(first: int, number: sa.ColumnElement[int]) -> sa.ColumnElement[Any]:
    """The id of the row with this number, which begins with 1."""
    content = first.to_bytes(16)
    head = sa.literal(content[:8], sa.LargeBinary)
    tail = sa.literal(int.from_bytes(content[8:], signed=True), sa.BigInteger)
    counted = head.concat(sa.func.int8send(tail + number))
    return sa.cast(sa.func.encode(counted, "hex"), sa.Uuid)


def numbered_id() -> sa.ColumnElement[Any]:
    """The id of each row of a statement, in the order in which it comes."""
    first = sa.select(sa.func.uuid_send(sa.func.uuidv7())).scalar_subquery()
    number = sa.cast(sa.func.row_number().over(), sa.Integer)
    counted = sa.func.substring(first, 1, 12).concat(sa.func.int4send(number))
    return sa.cast(sa.func.encode(counted, "hex"), sa.Uuid)


def copying_rows(
    table: sa.Table,
    values: Mapping[str, sa.ColumnElement[Any]],
    condition: Sequence[sa.ColumnElement[bool]],
) -> sa.Insert:
    """The statement that inserts copies of rows, with all columns but `values` as they are."""
    columns = [values.get(column.name, column) for column in table.c]
    names = [column.name for column in table.c]
    rows = sa.select(*columns).where(*condition)
    return sa.insert(table).from_select(names, rows, include_defaults=False)


async def update_rows(
    work: UnitOfWork, table: sa.Table, changes: Sequence[tuple[Id, Mapping[str, object]]]
) -> None:
    """Write the same columns of the rows with these ids."""
    values = [{"this": row_id, **new} for row_id, new in changes]
    if values:
        names = [name for name in values[0] if name != "this"]
        await work.execute(
            sa.update(table)
            .where(table.c.id == sa.bindparam("this"))
            .values({name: sa.bindparam(name) for name in names}),
            values,
        )


def first_rows_of_each(
    ids: Collection[Id], own: Callable[[sa.ColumnElement[Id]], sa.Select[Any]]
) -> sa.Select[Any]:
    """The rows that `own` selects of each id, in one statement.

    Where they are ordered and limited, the past of one owner is not read for another's.
    """
    each = sa.select(sa.func.unnest(sa.literal([*ids], sa.ARRAY(sa.Uuid))).label("id")).subquery(
        "each"
    )
    line = own(each.c.id).correlate(each).lateral("line")
    return sa.select(line).select_from(each.join(line, sa.true()))

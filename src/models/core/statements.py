"""Statements over many rows: counted ids, copies, updates, first rows of each owner."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Insert,
    Integer,
    LargeBinary,
    Select,
    Table,
    Uuid,
    bindparam,
    cast,
    func,
    insert,
    literal,
    select,
    true,
    update,
)

from models.core.base import Id
from runtime.database import UnitOfWork

_COUNTED_BITS = 32
"""Bits of an id that count the rows; 42 random ones stay."""


async def first_id(work: UnitOfWork) -> int:
    """The first of very many ids, from the database's clock; the others count on from it.

    PostgreSQL asks for random bits for each UUIDv7, which takes it longer than to write the row.
    """
    made: Id = await work.scalar(select(func.uuidv7(type_=Uuid)))
    return made.int >> _COUNTED_BITS << _COUNTED_BITS


def counted_id(first: int, number: ColumnElement[int]) -> ColumnElement[Any]:
    """The id of the row with this number, which begins with 1."""
    content = first.to_bytes(16)
    head = literal(content[:8], LargeBinary)
    tail = literal(int.from_bytes(content[8:], signed=True), BigInteger)
    counted = head.concat(func.int8send(tail + number))
    return cast(func.encode(counted, "hex"), Uuid)


def numbered_id() -> ColumnElement[Any]:
    """The id of each row of a statement, in the order in which it comes."""
    first = select(func.uuid_send(func.uuidv7())).scalar_subquery()
    number = cast(func.row_number().over(), Integer)
    counted = func.substring(first, 1, 12).concat(func.int4send(number))
    return cast(func.encode(counted, "hex"), Uuid)


def copying_rows(
    table: Table, values: Mapping[str, ColumnElement[Any]], condition: Sequence[ColumnElement[bool]]
) -> Insert:
    """The statement that inserts copies of rows, with all columns but `values` as they are."""
    columns = [values.get(column.name, column) for column in table.c]
    names = [column.name for column in table.c]
    rows = select(*columns).where(*condition)
    return insert(table).from_select(names, rows, include_defaults=False)


async def update_rows(
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


def first_rows_of_each(
    ids: Collection[Id], own: Callable[[ColumnElement[Id]], Select[Any]]
) -> Select[Any]:
    """The rows that `own` selects of each id, in one statement.

    Where they are ordered and limited, the past of one owner is not read for another's.
    """
    each = select(func.unnest(literal([*ids], ARRAY(Uuid))).label("id")).subquery("each")
    line = own(each.c.id).correlate(each).lateral("line")
    return select(line).select_from(each.join(line, true()))

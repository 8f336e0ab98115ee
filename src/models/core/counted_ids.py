"""Ids for very many rows of one statement: UUIDv7 that count on from the first.

PostgreSQL asks for random bits for each UUIDv7, which takes it longer than to write the row.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    LargeBinary,
    Uuid,
    cast,
    func,
    literal,
    select,
)

from models.core.base import Id
from runtime.database import UnitOfWork

_COUNTED_BITS = 32
"""Bits of an id that count the rows; 42 random ones stay."""


async def first_id(work: UnitOfWork) -> int:
    """The first of very many ids, from the database's clock; the others count on from it."""
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

"""Writing sealed values anew under the current key, in small transactions.

What is done is told by the rows themselves: a sealed value begins with the id of its key. So a
rotation that was killed is begun again, and several may run at once. A value that changed meanwhile
is left as it is.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import MetaData, Row, and_, bindparam, func, or_, select, tuple_, update
from sqlalchemy.exc import DBAPIError
from sqlmodel import SQLModel

from runtime.crypto import KeyRing, UnreadableError
from runtime.database import Database, UnitOfWork
from runtime.database_failures import is_conflict
from runtime.sealed_columns import SealedColumn, sealed_columns

_LOOKED_AT = 2_000
"""Rows that one statement reads the key of."""
_ROWS = 100
_BYTES = 4 * 1024 * 1024
"""Of sealed values, in one transaction; a larger value is written alone."""
_TRIES = 5
"""Of one transaction that others are in the way of."""


@dataclass(frozen=True, slots=True)
class Outdated:
    """Values of one kind under a key that is not the current one, and since when one is there."""

    kind: str
    key_id: bytes
    count: int
    oldest: datetime
    short_lived: bool


async def outdated_values(
    database: Database, keys: KeyRing, metadata: MetaData = SQLModel.metadata
) -> Sequence[Outdated]:
    """All values under other keys than the current one, by kind and key."""
    kinds: dict[tuple[str, bytes], Outdated] = {}
    for column in sealed_columns(metadata):
        async for page in _pages(database, column):
            for row in _others(page, keys):
                place = (column.name, bytes(row.sealed_under))
                outdated = kinds.get(place) or Outdated(
                    *place, 0, row.since, column.seal.short_lived
                )
                oldest = min(outdated.oldest, row.since)
                kinds[place] = replace(outdated, count=outdated.count + 1, oldest=oldest)
    return list(kinds.values())


async def rotate_values(
    database: Database,
    keys: KeyRing,
    on_progress: Callable[[str, int], None] = lambda *_: None,
    metadata: MetaData = SQLModel.metadata,
) -> None:
    """Seal everything anew that is not under the current key and can be read.

    `on_progress` hears of each transaction: the kind, and how many of it so far.
    """
    for column in sealed_columns(metadata):
        count = 0
        async for page in _pages(database, column):
            readable = [row for row in _others(page, keys) if row.sealed_under in keys.ids]
            for part in _parts(readable):
                count += await _resealed(database, keys, column, part)
                on_progress(column.name, count)


async def _pages(database: Database, column: SealedColumn) -> AsyncIterator[Sequence[Row[Any]]]:
    """The rows of a table in the order of its key: each with the key of its value, and its size."""
    after: tuple[Any, ...] | None = None
    statement = (
        select(
            *column.key,
            column.key_id.label("sealed_under"),
            func.octet_length(column.value).label("size"),
            column.moment.label("since"),
        )
        .order_by(*column.key)
        .limit(_LOOKED_AT)
    )
    while True:
        rest = statement if after is None else statement.where(tuple_(*column.key) > after)
        async with database.transaction() as work:
            page = await work.rows(rest)
        if not page:
            return
        yield page
        after = tuple(page[-1][: len(column.key)])


def _others(page: Sequence[Row[Any]], keys: KeyRing) -> Iterator[Row[Any]]:
    """The rows whose value is under another key than the current one."""
    return (row for row in page if row.sealed_under not in {None, keys.current_id})


def _parts(rows: Sequence[Row[Any]]) -> Iterator[Sequence[Row[Any]]]:
    """The rows in parts of which each is small enough for one transaction."""
    part: list[Row[Any]] = []
    for row in rows:
        if part and (len(part) == _ROWS or sum(one.size for one in part) + row.size > _BYTES):
            yield part
            part = []
        part.append(row)
    if part:
        yield part


async def _resealed(
    database: Database, keys: KeyRing, column: SealedColumn, rows: Sequence[Row[Any]]
) -> int:
    """One transaction, again where others were in its way."""
    for _ in range(_TRIES - 1):
        try:
            async with database.transaction() as work:
                return await _reseal(work, keys, column, rows)
        except DBAPIError as error:
            if not is_conflict(error):
                raise
    async with database.transaction() as work:
        return await _reseal(work, keys, column, rows)


async def _reseal(
    work: UnitOfWork, keys: KeyRing, column: SealedColumn, rows: Sequence[Row[Any]]
) -> int:
    """Write the values of these rows anew; gives the number that had not changed meanwhile."""
    table, names = column.column.table, [part.name for part in column.key]
    these = or_(*(and_(*(part == row._mapping[part.name] for part in column.key)) for row in rows))
    places = [table.columns[name] for name in column.seal.place_columns]
    values = await work.rows(
        select(*column.key, *places, column.value.label("sealed_value_")).where(these)
    )
    writing = (
        update(table)
        .where(*(part == bindparam(f"_{part.name}") for part in column.key))
        .where(column.value == bindparam("_old"))
        .values(_written(column))
    )
    count = 0
    for row in values:
        try:
            fresh = _fresh(keys, column, row)
        except UnreadableError:
            continue
        key = {f"_{name}": row._mapping[name] for name in names}
        count += (await work.execute(writing, {**key, "_old": row.sealed_value_, **fresh})).rowcount
    return count


def _written(column: SealedColumn) -> Mapping[str, Any]:
    values = {column.column.name: column.holding(bindparam("_new", type_=column.value.type))}
    if column.seal.digest is not None:
        values[column.seal.digest] = bindparam("_digest")
    return values


def _fresh(keys: KeyRing, column: SealedColumn, row: Row[Any]) -> Mapping[str, bytes]:
    """The value of a row under the current key. Raises UnreadableError."""
    place = column.seal.place(row)
    value = keys.unseal(bytes(row.sealed_value_), place)
    fresh = {"_new": keys.seal(value, place)}
    return fresh if column.seal.digest is None else {**fresh, "_digest": keys.digest(value)}

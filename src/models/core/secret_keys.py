"""Keys a database is written under: their record, the check of configured ones, rotation."""

from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA
from sqlalchemy.exc import DBAPIError
from sqlmodel import Field, SQLModel

from runtime.crypto import KeyRing, SealedColumn, UnreadableError, sealed_columns
from runtime.database import Database, UnitOfWork
from runtime.errors import UnavailableError
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.sessions import is_conflict
from runtime.postgresql.statements import lock_name


class SecretKey(SQLModel, table=True):
    """A key under which processes write, or wrote, and `since` when.

    The one with the highest `position` is the newest. A row is removed after its key was taken out
    of the configuration and nothing is left under it.
    """

    __tablename__ = "secret_key"

    id: bytes = Field(primary_key=True, sa_type=BYTEA)
    position: int = Field(unique=True)
    since: datetime = Field(sa_type=Timestamp)


secret_key = table_of(SecretKey)

DOCUMENTATION = "docs/secret-keys.md"


class WrongSecretKeyError(UnavailableError):
    """The process lacks a key under which the database holds values.

    `keys` names the keys for operators. It is in no answer: an id can be compared with guesses.
    """

    def __init__(
        self, message: str, recorded: Iterable[bytes], configured: Iterable[bytes]
    ) -> None:
        super().__init__(message)
        self.keys = f"Database: {key_names(recorded)}; configured: {key_names(configured)}."


def wrong_key(recorded: Iterable[bytes], configured: Iterable[bytes]) -> WrongSecretKeyError:
    """The error of a process that has no key of its database."""
    return WrongSecretKeyError(
        "WORKSPACE_SECRET_KEY does not match this database. Set the key that it uses."
        f" To change the key, put the new one first: NEW,OLD ({DOCUMENTATION}).",
        recorded,
        configured,
    )


def lacking_key(missing: Iterable[bytes], configured: Iterable[bytes]) -> WrongSecretKeyError:
    """The error of a process that has some of the keys of its database."""
    return WrongSecretKeyError(
        "WORKSPACE_SECRET_KEY lacks a key of this database. Add it after a comma. You can remove"
        f" an old key after `workspace rotate-secret` ({DOCUMENTATION}).",
        missing,
        configured,
    )


def check_keys(recorded: Collection[bytes], configured: Collection[bytes]) -> None:
    """Compare the keys of a database with the keys of a process. Raises WrongSecretKeyError.

    A database without keys is one that no process has written to yet.
    """
    missing = set(recorded) - set(configured)
    if not missing:
        return
    if len(missing) == len(recorded):
        raise wrong_key(recorded, configured)
    raise lacking_key(missing, configured)


def key_names(ids: Iterable[bytes]) -> str:
    """Keys as people see them: `key 1a2b3c4d`."""
    return ", ".join(f"key {key_id.hex()}" for key_id in ids)


class KnownKey(Protocol):
    """A key of the database; the one with the highest position is the newest."""

    id: bytes
    position: int
    since: datetime


async def known_keys(work: UnitOfWork) -> Mapping[bytes, KnownKey]:
    """The keys of the database by their ids, the newest first."""
    newest_first = sa.select(secret_key).order_by(secret_key.c.position.desc())
    return {row.id: row for row in await work.rows(newest_first, of=KnownKey)}


async def require_keys(work: UnitOfWork, keys: KeyRing) -> None:
    """Raise WrongSecretKeyError when a key of the database is not among these."""
    check_keys([*await known_keys(work)], keys.ids)


async def keys_in_use(work: UnitOfWork) -> Collection[bytes]:
    """The ids of the keys that values are sealed under which do not end by themselves."""
    found: set[bytes] = set()
    for column in sealed_columns(SQLModel.metadata):
        if not column.seal.short_lived:
            used = sa.select(column.key_id.label("id")).where(column.value.is_not(None)).distinct()
            found.update(bytes(row.id) for row in await work.rows(used))
    return found


def is_older_key(
    key_id: sa.ColumnElement[Any], than: sa.ColumnElement[Any]
) -> sa.ColumnElement[bool]:
    """The condition that a key came before another one, or is not known any more.

    While processes with `OLD,NEW` and `NEW,OLD` run side by side, it keeps the first from taking
    back what the others wrote anew.
    """

    def position(of: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.select(secret_key.c.position).where(secret_key.c.id == of).scalar_subquery()

    return sa.func.coalesce(position(key_id) < position(than), True)


async def register_keys(work: UnitOfWork, keys: KeyRing) -> None:
    """Record the current key before anything is written under it; every process begins with it.

    An older key that is no longer configured is forgotten when nothing is left under it. Raises
    WrongSecretKeyError.
    """
    recorded = await known_keys(work)
    if keys.current_id in recorded and recorded.keys() <= set(keys.ids):
        return
    # Several processes start at the same time, and not all need have the same key.
    await lock_name(work, "secret keys")
    recorded = await known_keys(work)
    if not recorded:
        await _adopt(work, keys)
        return
    missing = set(recorded) - set(keys.ids)
    if len(missing) == len(recorded):
        raise wrong_key(recorded, keys.ids)
    if missing:
        await _forget_unused(work, keys, missing)
    if keys.current_id not in recorded:
        await _add(work, keys.current_id)


async def promote_key(work: UnitOfWork, keys: KeyRing) -> None:
    """Make the current key the newest one, also where it is a former one that came back.

    Raises WrongSecretKeyError.
    """
    await register_keys(work, keys)
    await lock_name(work, "secret keys")
    newest = next(iter(await known_keys(work)))
    if newest != keys.current_id:
        await work.execute(sa.delete(secret_key).where(secret_key.c.id == keys.current_id))
        await _add(work, keys.current_id)


async def forget_lost_keys(work: UnitOfWork, keys: KeyRing) -> Collection[bytes]:
    """Continue without the keys that are not configured, even if values are under them; their ids.

    Nothing is deleted: a process that has such a key again reads its values.
    """
    await lock_name(work, "secret keys")
    known = await known_keys(work)
    lost = set(known) - set(keys.ids)
    await work.execute(sa.delete(secret_key).where(secret_key.c.id.in_(lost)))
    if keys.current_id not in known:
        await _add(work, keys.current_id)
    return lost


async def _adopt(work: UnitOfWork, keys: KeyRing) -> None:
    """Record the keys of a database that has no record of any: it is empty, or was upgraded."""
    used = set(await keys_in_use(work))
    if used and used.isdisjoint(keys.ids):
        raise wrong_key(used, keys.ids)
    for key_id in reversed(keys.ids):
        if key_id in used or key_id == keys.current_id:
            await _add(work, key_id)
    for table in SQLModel.metadata.tables.values():
        if "digest_key" in table.columns:
            unknown = table.columns["digest_key"].is_(None)
            await work.execute(sa.update(table).where(unknown).values(digest_key=keys.ids[-1]))


async def _forget_unused(work: UnitOfWork, keys: KeyRing, missing: Collection[bytes]) -> None:
    """Forget older keys that nothing is left under. Raises WrongSecretKeyError."""
    positions = {key_id: row.position for key_id, row in (await known_keys(work)).items()}
    newest = max(positions[key_id] for key_id in keys.ids if key_id in positions)
    needed = {key_id for key_id in missing if positions[key_id] > newest}
    # Values of a newer process are not there yet, or no longer under the key before it.
    needed = needed or set(missing) & set(await keys_in_use(work))
    if needed:
        raise lacking_key(needed, keys.ids)
    await work.execute(sa.delete(secret_key).where(secret_key.c.id.in_(missing)))


async def _add(work: UnitOfWork, key_id: bytes) -> None:
    highest = sa.select(sa.func.coalesce(sa.func.max(secret_key.c.position), 0)).scalar_subquery()
    await work.execute(
        sa.insert(secret_key).values(id=key_id, position=highest + 1, since=work.now)
    )


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


async def outdated_values(database: Database, keys: KeyRing) -> Sequence[Outdated]:
    """All values under other keys than the current one, by kind and key."""
    kinds: dict[tuple[str, bytes], Outdated] = {}
    for column in sealed_columns(SQLModel.metadata):
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
) -> None:
    """Seal all readable values again that are not under the current key.

    `on_progress` is called after each transaction with the kind and its number so far.

    The rows themselves tell what is done: a sealed value begins with the id of its key. So a
    rotation that was killed is begun again, and several may run at once. A value that changed
    meanwhile is left as it is.
    """
    for column in sealed_columns(SQLModel.metadata):
        count = 0
        async for page in _pages(database, column):
            readable = [row for row in _others(page, keys) if row.sealed_under in keys.ids]
            for part in _parts(readable):
                count += await _resealed(database, keys, column, part)
                on_progress(column.name, count)


async def _pages(database: Database, column: SealedColumn) -> AsyncIterator[Sequence[sa.Row[Any]]]:
    """The rows of a table in the order of its key: each with the key of its value, and its size."""
    after: tuple[Any, ...] | None = None
    statement = (
        sa.select(
            *column.key,
            column.key_id.label("sealed_under"),
            sa.func.octet_length(column.value).label("size"),
            column.moment.label("since"),
        )
        .order_by(*column.key)
        .limit(_LOOKED_AT)
    )
    while True:
        rest = statement if after is None else statement.where(sa.tuple_(*column.key) > after)
        async with database.transaction() as work:
            page = await work.rows(rest)
        if not page:
            return
        yield page
        after = tuple(page[-1][: len(column.key)])


def _others(page: Sequence[sa.Row[Any]], keys: KeyRing) -> Iterator[sa.Row[Any]]:
    """The rows whose value is under another key than the current one."""
    return (row for row in page if row.sealed_under not in {None, keys.current_id})


def _parts(rows: Sequence[sa.Row[Any]]) -> Iterator[Sequence[sa.Row[Any]]]:
    """The rows in parts of which each is small enough for one transaction."""
    part: list[sa.Row[Any]] = []
    for row in rows:
        if part and (len(part) == _ROWS or sum(one.size for one in part) + row.size > _BYTES):
            yield part
            part = []
        part.append(row)
    if part:
        yield part


async def _resealed(
    database: Database, keys: KeyRing, column: SealedColumn, rows: Sequence[sa.Row[Any]]
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
    work: UnitOfWork, keys: KeyRing, column: SealedColumn, rows: Sequence[sa.Row[Any]]
) -> int:
    """Write the values of these rows anew; gives the number that had not changed meanwhile."""
    table, names = column.column.table, [part.name for part in column.key]
    these = sa.or_(
        *(sa.and_(*(part == row._mapping[part.name] for part in column.key)) for row in rows)
    )
    places = [table.columns[name] for name in column.seal.place_columns]
    values = await work.rows(
        sa.select(*column.key, *places, column.value.label("sealed_value_")).where(these)
    )
    writing = (
        sa.update(table)
        .where(*(part == sa.bindparam(f"_{part.name}") for part in column.key))
        .where(column.value == sa.bindparam("_old"))
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
    values = {column.column.name: column.holding(sa.bindparam("_new", type_=column.value.type))}
    if column.seal.digest is not None:
        values[column.seal.digest] = sa.bindparam("_digest")
    return values


def _fresh(keys: KeyRing, column: SealedColumn, row: sa.Row[Any]) -> Mapping[str, bytes]:
    """The value of a row under the current key. Raises UnreadableError."""
    place = column.seal.place(row)
    value = keys.unseal(bytes(row.sealed_value_), place)
    fresh = {"_new": keys.seal(value, place)}
    return fresh if column.seal.digest is None else {**fresh, "_digest": keys.digest(value)}

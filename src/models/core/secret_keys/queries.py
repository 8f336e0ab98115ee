"""Reading which keys a database has values under."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, MetaData, func, select
from sqlmodel import SQLModel

from models.core.secret_keys.rules import check_keys
from models.core.secret_keys.tables import secret_key
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.sealed_columns import sealed_columns


class KnownKey(Protocol):
    """A key of the database; the one with the highest position is the newest."""

    id: bytes
    position: int
    since: datetime


async def known_keys(work: UnitOfWork) -> Mapping[bytes, KnownKey]:
    """The keys of the database by their ids, the newest first."""
    newest_first = select(secret_key).order_by(secret_key.c.position.desc())
    return {row.id: row for row in await work.rows(newest_first, of=KnownKey)}


async def require_keys(work: UnitOfWork, keys: KeyRing) -> None:
    """Raise WrongSecretKeyError when a key of the database is not among these."""
    check_keys([*await known_keys(work)], keys.ids)


async def keys_in_use(
    work: UnitOfWork, metadata: MetaData = SQLModel.metadata
) -> Collection[bytes]:
    """The ids of the keys that values are sealed under which do not end by themselves."""
    found: set[bytes] = set()
    for column in sealed_columns(metadata):
        if not column.seal.short_lived:
            used = select(column.key_id.label("id")).where(column.value.is_not(None)).distinct()
            found.update(bytes(row.id) for row in await work.rows(used))
    return found


def is_older_key(key_id: ColumnElement[Any], than: ColumnElement[Any]) -> ColumnElement[bool]:
    """The condition that a key came before another one, or is not known any more.

    While processes with `OLD,NEW` and `NEW,OLD` run side by side, it keeps the first from taking
    back what the others wrote anew.
    """

    def position(of: ColumnElement[Any]) -> ColumnElement[Any]:
        return select(secret_key.c.position).where(secret_key.c.id == of).scalar_subquery()

    return func.coalesce(position(key_id) < position(than), True)

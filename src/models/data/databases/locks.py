"""The lock between writing the records of a database and changing its fields.

Writers of records share it and read the schema after taking it; a change of fields takes it
exclusively. So no value is stored by the rules of a field that has changed.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, bindparam, cast, func, select

from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement

_KEY = bindparam("key", type_=BigInteger)
_SHARED = PreparedStatement(select(func.pg_advisory_xact_lock_shared(_KEY)))
_ALONE = PreparedStatement(select(func.pg_advisory_xact_lock(_KEY)))


async def share_schema(work: UnitOfWork, database_id: Id) -> None:
    """Keep the fields of a database as they are until the transaction ends."""
    await _SHARED.rows(work, {"key": _key(database_id)})


def sharing(database_id: ColumnElement[Any]) -> ColumnElement[Any]:
    """The lock of `share_schema` as a column, for a statement that finds the database itself."""
    tail = func.substring(func.uuid_send(database_id), 9)
    return func.pg_advisory_xact_lock_shared(cast(tail, BigInteger))


async def own_schema(work: UnitOfWork, database_id: Id) -> None:
    """Take the lock exclusively: wait for the writers of records, and keep others out."""
    await _ALONE.rows(work, {"key": _key(database_id)})


async def own_fields(work: UnitOfWork, workspace_id: Id) -> None:
    """Lock the fields of a workspace, whose databases relations connect, against other changes.

    Taken before the lock of any database, so that two such changes never deadlock.
    """
    await _ALONE.rows(work, {"key": _key(workspace_id)})


def _key(owner_id: Id) -> int:
    """The last 8 bytes of a UUIDv7 are random."""
    return int.from_bytes(owner_id.bytes[8:], "big", signed=True)

"""The lock between those who write records and those who change the fields that type them.

Writers share it and read the schema after taking it; a change of fields takes it alone. So no
value is ever stored by rules that no longer hold.
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
    """What `share_schema` takes, as a column: for a statement that finds the database itself."""
    tail = func.substring(func.uuid_send(database_id), 9)
    return func.pg_advisory_xact_lock_shared(cast(tail, BigInteger))


async def own_schema(work: UnitOfWork, database_id: Id) -> None:
    """Wait for the writers of a database's records, and keep new ones out meanwhile."""
    await _ALONE.rows(work, {"key": _key(database_id)})


async def own_fields(work: UnitOfWork, workspace_id: Id) -> None:
    """Keep others from changing fields of a workspace, where relations connect the databases.

    Taken before any database's own lock, so that two such changes never wait in a circle.
    """
    await _ALONE.rows(work, {"key": _key(workspace_id)})


def _key(owner_id: Id) -> int:
    """The last 8 bytes of a UUIDv7 are random."""
    return int.from_bytes(owner_id.bytes[8:], "big", signed=True)

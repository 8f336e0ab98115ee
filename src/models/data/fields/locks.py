"""The lock between writing the records of a database and changing its fields.

Writers of records share it and read the schema after taking it; a change of fields takes it
exclusively. So no value is stored by the rules of a field that has changed. A change that takes
longer than a second, such as that of a field's kind in many records, is not waited for.
"""

from typing import Any

import psycopg
from sqlalchemy import BigInteger, ColumnElement, bindparam, cast, func, select

from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.errors import InProgressError
from runtime.prepared_statement import PreparedStatement

_KEY = bindparam("key", type_=BigInteger)
_SHARED = PreparedStatement(select(func.pg_advisory_xact_lock_shared(_KEY)))
_TRY_SHARED_LOCK = PreparedStatement(
    select(func.pg_try_advisory_xact_lock_shared(_KEY).label("shared"))
)
WAIT = "1s"
"""The time a writer waits for a change of fields to end."""
_ALONE = PreparedStatement(select(func.pg_advisory_xact_lock(_KEY)))


class DatabaseBusyError(InProgressError):
    """Something that takes a while is done to a database: nothing is written meanwhile."""


class FieldsChangingError(DatabaseBusyError):
    """The fields of a database are being changed."""

    def __init__(self) -> None:
        super().__init__("The fields of this database are being changed. Try again in a moment.")


async def share_schema(work: UnitOfWork, database_id: Id) -> None:
    """Keep the fields of a database as they are until the transaction ends.

    Raises FieldsChangingError when they are being changed and that does not end soon.
    """
    at_once = await _TRY_SHARED_LOCK.first(work, {"key": _key(database_id)})
    if at_once is None or not at_once.shared:
        await share_schema_soon(work, database_id)


async def share_schema_soon(work: UnitOfWork, database_id: Id) -> None:
    """`share_schema` where the lock was not to be had at once."""
    await share_soon(work, _key(database_id), FieldsChangingError)


async def share_soon(work: UnitOfWork, key: int, busy: type[DatabaseBusyError]) -> None:
    """Share a lock that somebody holds alone; `busy` is raised when that does not end soon."""
    try:
        async with work.savepoint():
            await work.execute(select(func.set_config("lock_timeout", WAIT, True)))
            await _SHARED.rows(work, {"key": key})
            await work.execute(select(func.set_config("lock_timeout", "0", True)))
    except psycopg.errors.LockNotAvailable:
        raise busy from None


async def await_schema(work: UnitOfWork, database_id: Id) -> None:
    """`share_schema` for jobs, which wait as long as it takes."""
    await _SHARED.rows(work, {"key": _key(database_id)})


def sharing(database_id: ColumnElement[Any]) -> ColumnElement[Any]:
    """The column `shared`: true when the lock of `share_schema` was to be had at once.

    For a statement that finds the database itself; `share_schema_soon` follows where it is false.
    """
    tail = func.substring(func.uuid_send(database_id), 9)
    return func.pg_try_advisory_xact_lock_shared(cast(tail, BigInteger)).label("shared")


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

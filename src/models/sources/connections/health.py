"""The health of connections: how often in a row, and since when, the calls through one failed.

A connection that works has no row, so a call that succeeds writes nothing.
"""

from datetime import datetime
from typing import Protocol

from sqlalchemy import bindparam, delete, literal, select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Actor
from models.core.base import Id
from models.sources.connections.queries import seen_by
from models.sources.connections.tables import connection, failing_connection
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work

_MOST_SHOWN = 500
_failing = failing_connection.c
_WORKS = PreparedStatement(
    delete(failing_connection).where(
        _failing.workspace_id == bindparam("workspace_id"),
        _failing.connection_id == bindparam("connection_id"),
    )
)


class Failing(Protocol):
    """A connection whose last calls failed."""

    failures: int
    failing_since: datetime
    failed_at: datetime
    message: str


async def note_success(work: Work, workspace_id: Id, connection_id: Id) -> None:
    """Note that a call through a connection succeeded."""
    await _WORKS.execute(work, {"workspace_id": workspace_id, "connection_id": connection_id})


async def note_failure(work: UnitOfWork, workspace_id: Id, connection_id: Id, message: str) -> None:
    """Note that a call through a connection failed; one that was deleted meanwhile has no row."""
    there = select(
        connection.c.id,
        connection.c.workspace_id,
        literal(1),
        literal(work.now),
        literal(work.now),
        literal(message[:_MOST_SHOWN]),
    ).where(connection.c.workspace_id == workspace_id, connection.c.id == connection_id)
    columns = ("connection_id", "workspace_id", "failures", "failing_since", "failed_at", "message")
    statement = upsert(failing_connection).from_select(columns, there)
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["connection_id"],
            set_={
                "failures": _failing.failures + 1,
                "failed_at": statement.excluded.failed_at,
                "message": statement.excluded.message,
            },
        )
    )


async def failing(work: UnitOfWork, actor: Actor, connection_id: Id) -> Failing | None:
    """The failures of a connection that the actor sees; None while it works."""
    statement = (
        select(failing_connection)
        .join(connection, connection.c.id == _failing.connection_id)
        .where(*seen_by(actor), _failing.connection_id == connection_id)
    )
    return await work.first(statement, of=Failing)

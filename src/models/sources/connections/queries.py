"""Reading connections: for the API, with credentials for who uses them, and their health."""

import json
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.bounds import Bound
from models.core.pagination import PageRequest
from models.core.repository import Repository
from models.sources.connections.providers import ProviderName
from models.sources.connections.shapes import ConnectionDetail, ConnectionList
from models.sources.connections.tables import (
    Connection,
    connection,
    credentials_place,
    failing_connection,
)
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork, Work
from runtime.postgresql.statements import PreparedStatement


async def list_connections(work: UnitOfWork, actor: Actor, page: PageRequest) -> ConnectionList:
    """The connections that the actor sees, newest first."""
    return ConnectionList.of(await CONNECTIONS.page(work, actor, page))


async def get_connection(work: UnitOfWork, actor: Actor, connection_id: Id) -> ConnectionDetail:
    """A connection that the actor sees. Raises NotFoundError."""
    return ConnectionDetail.model_validate(await CONNECTIONS.find(work, actor, connection_id))


async def named_connection(work: UnitOfWork, actor: Actor, connection_id: Id) -> ConnectionDetail:
    """A connection that a config names, whoever sees it. Raises NotFoundError."""
    this = (connection.c.workspace_id == actor.workspace_id, connection.c.id == connection_id)
    found = await work.one(sa.select(connection).where(*this), "connection", of=Connection)
    return ConnectionDetail.model_validate(found)


async def sees_connection(work: UnitOfWork, actor: Actor, connection_id: Id) -> bool:
    """True when a connection exists that the actor sees."""
    statement = sa.select(connection.c.id).where(*seen_by(actor), connection.c.id == connection_id)
    return await work.scalar(statement) is not None


async def is_shared(work: UnitOfWork, workspace_id: Id, connection_id: Id) -> bool:
    """True when every member sees a connection."""
    this = (connection.c.workspace_id == workspace_id, connection.c.id == connection_id)
    return bool(await work.scalar(sa.select(connection.c.shared).where(*this)))


def existing_connections(workspace_id: Id, connection_ids: Collection[Id]) -> sa.Select[Id]:
    """The ids of the given connections that exist, whoever sees them."""
    return sa.select(connection.c.id).where(
        connection.c.workspace_id == workspace_id, connection.c.id.in_(connection_ids)
    )


def seen_connections(actor: Actor) -> sa.Select[Id]:
    """The ids of the connections that an actor sees."""
    return sa.select(connection.c.id).where(*seen_by(actor))


def seen_by(actor: Actor) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions on connections an actor sees: in the workspace, and shared or its own."""
    return (
        connection.c.workspace_id == actor.workspace_id,
        sa.or_(connection.c.shared, connection.c.created_by_user_id == actor.user_id),
    )


CONNECTIONS = Repository(
    "connection", connection, Connection, seen_by, Bound(connection, 200, "connections")
)


class Connected(NamedTuple):
    """The provider and the config of a connection, and the credentials it signs in with."""

    provider: ProviderName
    config: JsonObject
    credentials: dict[str, str]


_SEALED = PreparedStatement(
    sa.select(connection.c.provider, connection.c.config, connection.c.sealed_credentials).where(
        connection.c.workspace_id == sa.bindparam("workspace_id"),
        connection.c.id == sa.bindparam("id"),
    )
)


async def open_connection(
    work: Work, keys: KeyRing, workspace_id: Id, connection_id: Id
) -> Connected | None:
    """A connection with its credentials, or None when it was deleted.

    Whoever named it saw it then. Raises UnreadableError.
    """
    found = await _SEALED.first(work, {"workspace_id": workspace_id, "id": connection_id})
    if found is None:
        return None
    opened = keys.unseal(found.sealed_credentials, credentials_place(connection_id))
    return Connected(ProviderName(found.provider), found.config, json.loads(opened))


async def hold_connection(work: UnitOfWork, workspace_id: Id, connection_id: Id) -> None:
    """Lock a connection, if there is one: who changes its credentials does so alone."""
    this = (connection.c.workspace_id == workspace_id, connection.c.id == connection_id)
    await work.execute(sa.select(connection.c.id).where(*this).with_for_update())


_MOST_SHOWN = 500
_failing = failing_connection.c
_WORKS = PreparedStatement(
    sa.delete(failing_connection).where(
        _failing.workspace_id == sa.bindparam("workspace_id"),
        _failing.connection_id == sa.bindparam("connection_id"),
    )
)


class Failing(Protocol):
    """A connection whose last calls failed.

    A connection that works has no such row, so a call that succeeds writes nothing.
    """

    failures: int
    failing_since: datetime
    failed_at: datetime
    message: str


async def note_success(work: Work, workspace_id: Id, connection_id: Id) -> None:
    """Note that a call through a connection succeeded."""
    await _WORKS.execute(work, {"workspace_id": workspace_id, "connection_id": connection_id})


async def note_failure(work: UnitOfWork, workspace_id: Id, connection_id: Id, message: str) -> None:
    """Note that a call through a connection failed; one that was deleted meanwhile has no row."""
    there = sa.select(
        connection.c.id,
        connection.c.workspace_id,
        sa.literal(1),
        sa.literal(work.now),
        sa.literal(work.now),
        sa.literal(message[:_MOST_SHOWN]),
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
        sa.select(failing_connection)
        .join(connection, connection.c.id == _failing.connection_id)
        .where(*seen_by(actor), _failing.connection_id == connection_id)
    )
    return await work.first(statement, of=Failing)

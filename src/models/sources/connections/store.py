"""Connections: their table, which holds credentials sealed only, what reads and what changes them.

Credentials are opened for who uses them alone."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.content.files.queries import readable_file
from models.core.access.rules import Actor
from models.core.base import Deleted, Id, JsonObject
from models.core.pagination import PageRequest
from models.core.problems import read_part
from models.core.repository import Bound, Repository
from models.core.values import next_updated_at
from models.sources.connections import providers
from runtime.crypto import KeyRing, sealed
from runtime.database import UnitOfWork, Work
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement


def credentials_place(connection_id: Id) -> str:
    """The place that the sealed credentials of a connection are bound to."""
    return f"connection|{connection_id}|sealed_credentials"


class Connection(SQLModel, table=True):
    """A connection to a provider. It is its maker's own until it is shared with the workspace."""

    __tablename__ = "connection"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("provider", providers.ProviderName),
        sa.Index("ix_connection_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    provider: str
    label: str
    config: dict[str, Any] = Field(sa_type=JSONB)
    sealed_credentials: bytes = Field(
        sa_type=sa.LargeBinary, sa_column_kwargs=sealed(lambda row: credentials_place(row.id))
    )
    shared: bool
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class ProviderSwitch(SQLModel, table=True):
    """A provider that was switched off, or on again; the others are on."""

    __tablename__ = "provider_switch"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"], ondelete="CASCADE"),
    )

    workspace_id: Id = Field(primary_key=True)
    provider: str = Field(primary_key=True)
    enabled: bool
    updated_at: datetime = Field(sa_type=Timestamp)


class FailingConnection(SQLModel, table=True):
    """A connection whose last calls failed, with their number; a success removes the row."""

    __tablename__ = "failing_connection"
    __table_args__ = (same_workspace("connection_id", "connection.id", ondelete="CASCADE"),)

    connection_id: Id = Field(primary_key=True)
    workspace_id: Id
    failures: int = Field(sa_type=sa.BigInteger)
    failing_since: datetime = Field(sa_type=Timestamp)
    failed_at: datetime = Field(sa_type=Timestamp)
    message: str


connection = table_of(Connection)
provider_switch = table_of(ProviderSwitch)
failing_connection = table_of(FailingConnection)


async def list_connections(
    work: UnitOfWork, actor: Actor, page: PageRequest
) -> providers.ConnectionList:
    """The connections that the actor sees, newest first."""
    return providers.ConnectionList.of(await CONNECTIONS.page(work, actor, page))


async def get_connection(
    work: UnitOfWork, actor: Actor, connection_id: Id
) -> providers.ConnectionDetail:
    """A connection that the actor sees. Raises NotFoundError."""
    return providers.ConnectionDetail.model_validate(
        await CONNECTIONS.find(work, actor, connection_id)
    )


async def named_connection(
    work: UnitOfWork, actor: Actor, connection_id: Id
) -> providers.ConnectionDetail:
    """A connection that a config names, whoever sees it. Raises NotFoundError."""
    this = (connection.c.workspace_id == actor.workspace_id, connection.c.id == connection_id)
    found = await work.one(sa.select(connection).where(*this), "connection", of=Connection)
    return providers.ConnectionDetail.model_validate(found)


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

    provider: providers.ProviderName
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
    return Connected(providers.ProviderName(found.provider), found.config, json.loads(opened))


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


async def create_connection(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: providers.CreateConnection
) -> providers.ConnectionDetail:
    """Store a connection of the actor.

    Raises ValidationError for what the provider does not take, NotFoundError for a file that the
    actor does not see, ConflictError when there are too many.
    """
    config = await checked_config(work, actor, body.provider, body.config)
    _check_credentials(body.provider, config, body.credentials)
    return await add_connection(work, actor, keys, body, config)


async def add_connection(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    body: providers.CreateConnection,
    config: JsonObject,
) -> providers.ConnectionDetail:
    """Store a connection whose config and credentials were checked. Raises ConflictError."""
    connection_id = new_id()
    values = {
        "provider": body.provider.value,
        "label": body.label,
        "config": config,
        "sealed_credentials": sealed_credentials(keys, connection_id, body.credentials),
        "shared": body.shared,
        "created_by_user_id": actor.user_id,
    }
    made = await CONNECTIONS.add(work, actor, connection_id, values)
    return providers.ConnectionDetail.model_validate(made)


async def update_connection(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    connection_id: Id,
    body: providers.UpdateConnection,
) -> providers.ConnectionDetail:
    """Change what the body names. Open runs use the new credentials.

    Raises what `create_connection` raises, and NotFoundError.
    """
    before = await get_connection(work, actor, connection_id)
    named = body.model_fields_set
    values: JsonObject = body.model_dump(include=named & {"label", "shared"})
    config = before.config
    if "config" in named:
        config = values["config"] = await checked_config(work, actor, before.provider, body.config)
    if "config" in named or "credentials" in named:
        # Else whoever may change the host could have the password sent to their own.
        _check_credentials(before.provider, config, body.credentials)
        values["sealed_credentials"] = sealed_credentials(keys, connection_id, body.credentials)
    row = await CONNECTIONS.change(work, actor, connection_id, values)
    return providers.ConnectionDetail.model_validate(row)


async def delete_connection(work: UnitOfWork, actor: Actor, connection_id: Id) -> Deleted:
    """Delete a connection with its credentials; what names it fails from then on.

    Raises NotFoundError.
    """
    return await CONNECTIONS.delete(work, actor, connection_id)


async def checked_config(
    work: UnitOfWork, actor: Actor, provider: providers.ProviderName, config: JsonObject
) -> JsonObject:
    """The config of a connection as it is stored.

    Raises ValidationError, and NotFoundError for a file that the actor does not see.
    """
    read = read_part(providers.PROVIDERS[provider].config, config, "config")
    if isinstance(read, providers.SqliteConnection):
        await readable_file(work, actor, read.file_id)
    return read.model_dump(mode="json", by_alias=True, exclude_none=True)


def _check_credentials(
    provider: providers.ProviderName, config: JsonObject, given: Mapping[str, str]
) -> None:
    """Raise ValidationError unless these are the credentials the provider signs in with."""
    names = () if config.get("auth") == "none" else providers.PROVIDERS[provider].credentials
    for name in given:
        if name not in names:
            known = " and ".join(names) or "none"
            raise ValidationError.at(f"credentials.{name}", f"Unknown. Allowed: {known}.")
    for name in names:
        if name not in given:
            raise ValidationError.at(f"credentials.{name}", "Required by the provider.")


def sealed_credentials(keys: KeyRing, connection_id: Id, credentials: Mapping[str, str]) -> bytes:
    """Credentials as they are stored: encrypted, and bound to their connection."""
    return keys.seal(json.dumps(credentials).encode(), credentials_place(connection_id))


async def store_credentials(
    work: UnitOfWork, keys: KeyRing, workspace_id: Id, connection_id: Id, new: Mapping[str, str]
) -> None:
    """Replace the credentials of a connection."""
    await work.execute(
        sa.update(connection)
        .where(connection.c.workspace_id == workspace_id, connection.c.id == connection_id)
        .values(
            sealed_credentials=sealed_credentials(keys, connection_id, new),
            updated_at=next_updated_at(connection.c.updated_at, work.now),
        )
    )


def feature_name(provider: providers.ProviderName) -> str:
    """The name of a provider's feature."""
    return f"provider:{provider.value}"


class FeatureOffError(DeniedError):
    """The workspace has switched a provider off."""

    def __init__(self, provider: providers.ProviderName) -> None:
        super().__init__(
            f'The feature "{feature_name(provider)}" is disabled in this workspace.'
            " An administrator can enable it."
        )


async def list_providers(work: UnitOfWork, actor: Actor) -> list[providers.ProviderDetail]:
    """The providers that a workspace can connect to, and which of them are on."""
    rows = await work.rows(
        sa.select(provider_switch.c.provider, provider_switch.c.enabled).where(
            provider_switch.c.workspace_id == actor.workspace_id
        )
    )
    switched = {row.provider: row.enabled for row in rows}
    return [_provider_detail(name, switched) for name in providers.PROVIDERS]


async def switch_provider(
    work: UnitOfWork, actor: Actor, name: str, body: providers.SwitchProvider
) -> providers.ProviderDetail:
    """Switch a provider on or off. Raises NotFoundError for one that there is not."""
    if name not in {one.value for one in providers.PROVIDERS}:
        raise NotFoundError("provider")
    values = {"enabled": body.enabled, "updated_at": work.now}
    await work.execute(
        upsert(provider_switch)
        .values(workspace_id=actor.workspace_id, provider=name, **values)
        .on_conflict_do_update(index_elements=["workspace_id", "provider"], set_=values)
    )
    return _provider_detail(providers.ProviderName(name), {name: body.enabled})


async def require_feature(
    work: UnitOfWork, workspace_id: Id, provider: providers.ProviderName
) -> None:
    """Raise FeatureOffError where the workspace has switched the provider off."""
    off = sa.select(
        sa.exists().where(
            provider_switch.c.workspace_id == workspace_id,
            provider_switch.c.provider == provider.value,
            ~provider_switch.c.enabled,
        )
    )
    if await work.scalar(off):
        raise FeatureOffError(provider)


def _provider_detail(
    name: providers.ProviderName, switched: Mapping[str, bool]
) -> providers.ProviderDetail:
    provider = providers.PROVIDERS[name]
    return providers.ProviderDetail(
        provider=name,
        label=provider.label,
        description=provider.description,
        credentials=list(provider.credentials),
        capabilities=list(provider.capabilities),
        feature=feature_name(name),
        enabled=switched.get(name.value, True),
    )

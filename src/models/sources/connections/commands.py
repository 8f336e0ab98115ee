"""Creating, changing and deleting connections, and switching providers on and off."""

import json
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.content.files.queries import readable_file
from models.core.access.rules import Actor
from models.core.base import Deleted, Id, JsonObject
from models.core.problems import read_part
from models.core.revisions import next_updated_at
from models.sources.connections import shapes
from models.sources.connections.providers import PROVIDERS, ProviderName, SqliteConnection
from models.sources.connections.queries import CONNECTIONS, get_connection
from models.sources.connections.tables import (
    connection,
    credentials_place,
    provider_switch,
)
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id


async def create_connection(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: shapes.CreateConnection
) -> shapes.ConnectionDetail:
    """Store a connection of the actor.

    Raises ValidationError for what the provider does not take, NotFoundError for a file that the
    actor does not see, ConflictError when there are too many.
    """
    config = await checked_config(work, actor, body.provider, body.config)
    _check_credentials(body.provider, config, body.credentials)
    return await add_connection(work, actor, keys, body, config)


async def add_connection(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: shapes.CreateConnection, config: JsonObject
) -> shapes.ConnectionDetail:
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
    return shapes.ConnectionDetail.model_validate(made)


async def update_connection(
    work: UnitOfWork, actor: Actor, keys: KeyRing, connection_id: Id, body: shapes.UpdateConnection
) -> shapes.ConnectionDetail:
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
    return shapes.ConnectionDetail.model_validate(row)


async def delete_connection(work: UnitOfWork, actor: Actor, connection_id: Id) -> Deleted:
    """Delete a connection with its credentials; what names it fails from then on.

    Raises NotFoundError.
    """
    return await CONNECTIONS.delete(work, actor, connection_id)


async def checked_config(
    work: UnitOfWork, actor: Actor, provider: ProviderName, config: JsonObject
) -> JsonObject:
    """The config of a connection as it is stored.

    Raises ValidationError, and NotFoundError for a file that the actor does not see.
    """
    read = read_part(PROVIDERS[provider].config, config, "config")
    if isinstance(read, SqliteConnection):
        await readable_file(work, actor, read.file_id)
    return read.model_dump(mode="json", by_alias=True, exclude_none=True)


def _check_credentials(
    provider: ProviderName, config: JsonObject, given: Mapping[str, str]
) -> None:
    """Raise ValidationError unless these are the credentials the provider signs in with."""
    names = () if config.get("auth") == "none" else PROVIDERS[provider].credentials
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


def feature_name(provider: ProviderName) -> str:
    """The name of a provider's feature."""
    return f"provider:{provider.value}"


class FeatureOffError(DeniedError):
    """The workspace has switched a provider off."""

    def __init__(self, provider: ProviderName) -> None:
        super().__init__(
            f'The feature "{feature_name(provider)}" is disabled in this workspace.'
            " An administrator can enable it."
        )


async def list_providers(work: UnitOfWork, actor: Actor) -> list[shapes.ProviderDetail]:
    """The providers that a workspace can connect to, and which of them are on."""
    rows = await work.rows(
        sa.select(provider_switch.c.provider, provider_switch.c.enabled).where(
            provider_switch.c.workspace_id == actor.workspace_id
        )
    )
    switched = {row.provider: row.enabled for row in rows}
    return [_provider_detail(name, switched) for name in PROVIDERS]


async def switch_provider(
    work: UnitOfWork, actor: Actor, name: str, body: shapes.SwitchProvider
) -> shapes.ProviderDetail:
    """Switch a provider on or off. Raises NotFoundError for one that there is not."""
    if name not in {one.value for one in PROVIDERS}:
        raise NotFoundError("provider")
    values = {"enabled": body.enabled, "updated_at": work.now}
    await work.execute(
        upsert(provider_switch)
        .values(workspace_id=actor.workspace_id, provider=name, **values)
        .on_conflict_do_update(index_elements=["workspace_id", "provider"], set_=values)
    )
    return _provider_detail(ProviderName(name), {name: body.enabled})


async def require_feature(work: UnitOfWork, workspace_id: Id, provider: ProviderName) -> None:
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


def _provider_detail(name: ProviderName, switched: Mapping[str, bool]) -> shapes.ProviderDetail:
    provider = PROVIDERS[name]
    return shapes.ProviderDetail(
        provider=name,
        label=provider.label,
        description=provider.description,
        credentials=list(provider.credentials),
        capabilities=list(provider.capabilities),
        feature=feature_name(name),
        enabled=switched.get(name.value, True),
    )

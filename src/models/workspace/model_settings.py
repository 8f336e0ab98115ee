"""The language model that a workspace has its drafts and plans written by; its key is sealed."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated
from urllib.parse import urlsplit

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Actor
from models.core.base import Id, Input, Moment, Shape, example
from models.core.http_requests import GIVE_AGAIN, CallableUrl, hidden_url, restored_url
from runtime.crypto import KeyRing, sealed
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.postgresql.schema import Timestamp, table_of


def key_place(workspace_id: Id) -> str:
    """The place that the sealed key is bound to."""
    return f"model_settings|{workspace_id}|sealed_api_key"


class ModelSettings(SQLModel, table=True):
    """The model of one workspace: an endpoint that speaks as OpenAI's does."""

    __tablename__ = "model_settings"
    __table_args__ = (sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),)

    workspace_id: Id = TableField(primary_key=True)
    base_url: str
    model: str
    sealed_api_key: bytes | None = TableField(
        default=None,
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: key_place(row.workspace_id)),
    )
    enabled: bool
    timeout_seconds: int
    updated_by_user_id: Id
    updated_at: datetime = TableField(sa_type=Timestamp)


model_settings = table_of(ModelSettings)

REDACTED = "********"
"""Stands for a key that is stored. Sent back, it keeps the key."""

DEFAULT_SECONDS, MAX_SECONDS = 60, 300

HeaderSafe = Annotated[str, Field(min_length=1, max_length=4_000, pattern=r"^[\x21-\x7e]+$")]


class PutModelSettings(Input):
    """Body of put model settings, which replaces all of them.

    `baseUrl` is the part before `/chat/completions`. Without `apiKey`, or with the eight stars of a
    response, a stored key is kept while `baseUrl` has the same origin; null removes it. With
    `enabled` false drafts are template-based.
    """

    model_config = example(
        {"baseUrl": "https://llm.example.com/v1", "model": "some-model", "apiKey": "sk-123"}
    )

    base_url: CallableUrl
    model: Annotated[str, Field(min_length=1, max_length=200)]
    api_key: HeaderSafe | None = None
    enabled: bool = True
    timeout_seconds: Annotated[int, Field(ge=5, le=MAX_SECONDS)] = DEFAULT_SECONDS


class ModelSettingsBody(Shape):
    """The model settings.

    Only if `configured`, there are other keys. `apiKey` is always the same stars, if a key is
    stored.
    """

    configured: bool
    enabled: bool
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None
    timeout_seconds: int | None = None
    updated_by_user_id: Id | None = None
    updated_at: Moment | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The place where a model is asked, and the key."""

    base_url: str
    model: str
    timeout_seconds: int
    api_key: str | None = field(default=None, repr=False)


async def find_settings(work: UnitOfWork, workspace_id: Id) -> ModelSettings | None:
    """The row, None where nothing was set."""
    statement = sa.select(model_settings).where(model_settings.c.workspace_id == workspace_id)
    return await work.first(statement, of=ModelSettings)


async def get_settings(work: UnitOfWork, workspace_id: Id) -> ModelSettingsBody:
    """The settings as they are shown."""
    return shown(await find_settings(work, workspace_id))


def shown(row: ModelSettings | None) -> ModelSettingsBody:
    if row is None:
        return ModelSettingsBody(configured=False, enabled=False)
    return ModelSettingsBody(
        configured=True,
        enabled=row.enabled,
        base_url=hidden_url(row.base_url),
        model=row.model,
        api_key=None if row.sealed_api_key is None else REDACTED,
        timeout_seconds=row.timeout_seconds,
        updated_by_user_id=row.updated_by_user_id,
        updated_at=row.updated_at,
    )


async def has_model(work: UnitOfWork, workspace_id: Id) -> bool:
    """True when a model is to be asked."""
    found = await find_settings(work, workspace_id)
    return found is not None and found.enabled


async def open_endpoint(work: UnitOfWork, keys: KeyRing, workspace_id: Id) -> Endpoint | None:
    """The endpoint with its key, None where no model is to be asked. Raises `UnreadableError`."""
    settings = await find_settings(work, workspace_id)
    if settings is None or not settings.enabled:
        return None
    api_key = None
    if settings.sealed_api_key is not None:
        api_key = keys.unseal(settings.sealed_api_key, key_place(workspace_id)).decode()
    return Endpoint(settings.base_url, settings.model, settings.timeout_seconds, api_key)


async def put_settings(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: PutModelSettings
) -> ModelSettingsBody:
    """Replace the settings.

    A stored key goes to the origin it was given for and to no other: raises `ValidationError` when
    another one would get it.
    """
    before = await find_settings(work, actor.workspace_id)
    base_url = restored_url(body.base_url, None if before is None else before.base_url)
    if base_url is None:
        raise ValidationError.at("baseUrl", GIVE_AGAIN)
    values = {
        "base_url": base_url,
        "model": body.model,
        "sealed_api_key": _sealed_key(actor, keys, before, body),
        "enabled": body.enabled,
        "timeout_seconds": body.timeout_seconds,
        "updated_by_user_id": actor.user_id,
        "updated_at": work.now,
    }
    statement = insert(model_settings).values(workspace_id=actor.workspace_id, **values)
    row = await work.first(
        statement.on_conflict_do_update(index_elements=["workspace_id"], set_=values).returning(
            model_settings
        ),
        of=ModelSettings,
    )
    return shown(row)


def _sealed_key(
    actor: Actor, keys: KeyRing, before: ModelSettings | None, body: PutModelSettings
) -> bytes | None:
    if body.api_key not in {None, REDACTED}:
        assert body.api_key is not None
        return keys.seal(body.api_key.encode(), key_place(actor.workspace_id))
    removed = "api_key" in body.model_fields_set and body.api_key is None
    sealed_key = None if before is None or removed else before.sealed_api_key
    if sealed_key is None:
        return None
    assert before is not None
    if _origin(before.base_url) != _origin(body.base_url):
        message = "Enter the key of the new endpoint, or null for none."
        raise ValidationError.at("apiKey", message)
    return sealed_key


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}[parts.scheme]

"""Reading model settings: without the key for the API, with it for who calls the model."""

from dataclasses import dataclass, field

from sqlalchemy import select

from models.core.base import Id
from models.core.credentials import hidden_url
from models.workspace.model_settings.shapes import REDACTED, ModelSettingsBody
from models.workspace.model_settings.tables import ModelSettings, key_place, model_settings
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The place where a model is asked, and the key."""

    base_url: str
    model: str
    timeout_seconds: int
    api_key: str | None = field(default=None, repr=False)


async def find_settings(work: UnitOfWork, workspace_id: Id) -> ModelSettings | None:
    """The row, None where nothing was set."""
    statement = select(model_settings).where(model_settings.c.workspace_id == workspace_id)
    return await work.first(statement, of=ModelSettings)


async def get_settings(work: UnitOfWork, workspace_id: Id) -> ModelSettingsBody:
    """The settings as they are shown."""
    return shown(await find_settings(work, workspace_id))


def shown(row: ModelSettings | None) -> ModelSettingsBody:
    """A row as it is shown."""
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

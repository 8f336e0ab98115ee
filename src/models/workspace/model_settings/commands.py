"""Setting the model of a workspace."""

from urllib.parse import urlsplit

from sqlalchemy.dialects.postgresql import insert

from models.core.access.rules import Actor
from models.core.credentials import GIVE_AGAIN, restored_url
from models.workspace.model_settings.queries import find_settings, shown
from models.workspace.model_settings.shapes import REDACTED, ModelSettingsBody, PutModelSettings
from models.workspace.model_settings.tables import ModelSettings, key_place, model_settings
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ValidationError


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
        message = "Another endpoint needs its key, or null for none."
        raise ValidationError.at("apiKey", message)
    return sealed_key


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}[parts.scheme]

"""Secrets of a workspace and its language model: what goes in and never comes out."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.routing import page_router
from api.console.workspace.settings import (
    SETTINGS,
    Notice,
    changes,
    led_to,
    reads,
    settings_page,
    turning,
)
from api.kernel.routing import ApiRequest, Cursor
from api.routers.automation import automations as api
from api.routers.workspace import ai_runs
from models.automation.secrets import store
from models.automation.secrets.store import PutSecret
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.workspace import model_settings
from models.workspace.model_settings import (
    DEFAULT_SECONDS,
    MAX_SECONDS,
    PutModelSettings,
)

router = page_router()

SECRETS = f"{SETTINGS}/secrets"


@router.get(SECRETS, access=reads(Scope.INTEGRATIONS_READ))
async def get_secrets(
    request: ApiRequest, cursor: Cursor = None, notice: Notice | None = None
) -> Response:
    """Look through the names of the secrets of a workspace."""
    return await _secrets_page(request, BLANK, cursor, notice)


async def _secrets_page(
    request: ApiRequest,
    entered: Entered,
    cursor: str | None = None,
    notice: Notice | None = None,
) -> Response:
    wanted = request.page("secrets", DEFAULT_LIMIT, cursor)
    listed = await store.list_secrets(request.work, request.actor, wanted)
    return await settings_page(
        request,
        "settings_secrets.html",
        "secrets",
        api.list_secrets,
        (api.put_secret, {"value": "…"}),
        api.delete_secret,
        secrets=listed.secrets,
        turning=turning(request, cursor, listed.cursor),
        entered=entered,
        notice=notice,
    )


@router.post(SECRETS, access=changes(Scope.INTEGRATIONS_WRITE))
@redisplays(_secrets_page)
async def put_secret_by_form(request: ApiRequest, body: Fields) -> Response:
    """Store a secret, or give it another value."""
    name = body.texts.get("name", "")

    wanted = read_as(PutSecret, {"value": body.texts.get("secretValue", "")})
    await store.put_secret(request.work, request.actor, request.services.keys, name, wanted)
    return led_to(request, "secrets", notice=Notice.SAVED)


@router.post(f"{SECRETS}/{{secretName}}/delete", access=changes(Scope.INTEGRATIONS_WRITE))
async def delete_secret_by_form(request: ApiRequest) -> Response:
    """Delete a secret."""
    name = request.path_params["secretName"]
    await store.delete_secret(request.work, request.actor, name)
    return led_to(request, "secrets", notice=Notice.REMOVED)


MODEL = f"{SETTINGS}/model"


@router.get(MODEL, access=reads(Scope.MODELS_READ))
async def get_model_form(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the language model of a workspace."""
    return await _model_page(request, BLANK, notice=notice)


async def _model_page(
    request: ApiRequest, entered: Entered, notice: Notice | None = None
) -> Response:
    return await settings_page(
        request,
        "settings_model.html",
        "model",
        ai_runs.get_model_settings,
        ai_runs.put_model_settings,
        notice=notice,
        entered=entered,
        model=await model_settings.get_settings(request.work, request.actor.workspace_id),
        seconds=DEFAULT_SECONDS,
        most_seconds=MAX_SECONDS,
    )


@router.post(MODEL, access=changes(Scope.MODELS_WRITE))
@redisplays(_model_page)
async def put_model_by_form(request: ApiRequest, body: Fields) -> Response:
    """Set the language model of a workspace."""
    settings = read_as(PutModelSettings, _model_values(body.texts))
    keys = request.services.keys
    await model_settings.put_settings(request.work, request.actor, keys, settings)
    return led_to(request, "model", notice=Notice.SAVED)


def _model_values(texts: dict[str, str]) -> dict[str, object]:
    """The body that the form stands for: a key that is left empty stays as it is."""
    seconds = texts.get("timeoutSeconds", "")
    values: dict[str, object] = {
        "baseUrl": texts.get("baseUrl", ""),
        "model": texts.get("model", ""),
        "enabled": "enabled" in texts,
        "timeoutSeconds": int(seconds) if seconds.isdecimal() and len(seconds) < 9 else seconds,
    }
    if "removeKey" in texts:
        values["apiKey"] = None
    elif "secretKey" in texts:
        values["apiKey"] = texts["secretKey"]
    return values

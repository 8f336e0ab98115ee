"""The language model that writes drafts and plans. Its key goes in and never comes out."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.routing import page_router
from api.console.workspace.settings import (
    SETTINGS,
    Notice,
    changes,
    led_to,
    reads,
    settings_page,
)
from api.kernel.routing import ApiRequest
from models.core.access.rules import Scope
from models.workspace.model_settings import commands, queries
from models.workspace.model_settings.shapes import (
    DEFAULT_SECONDS,
    MAX_SECONDS,
    ModelSettingsBody,
    PutModelSettings,
)
from runtime.errors import PlatformError

router = page_router()

MODEL = f"{SETTINGS}/model"


@router.get(MODEL, access=reads(Scope.MODELS_READ))
async def get_model_form(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the language model of a workspace."""
    return await _shown(request, BLANK, notice=notice)


@router.post(MODEL, access=changes(Scope.MODELS_WRITE))
async def put_model_by_form(request: ApiRequest, body: Fields) -> Response:
    """Set the language model of a workspace."""

    async def put() -> ModelSettingsBody:
        settings = read_as(PutModelSettings, _values(body.texts))
        keys = request.services.keys
        return await commands.put_settings(request.work, request.actor, keys, settings)

    outcome = await attempt(request, put)
    if isinstance(outcome, PlatformError):
        return await _shown(request, Entered(body.texts, outcome))
    return led_to(request, "model", notice=Notice.SAVED)


def _values(texts: dict[str, str]) -> dict[str, object]:
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


async def _shown(request: ApiRequest, entered: Entered, notice: Notice | None = None) -> Response:
    return await settings_page(
        request,
        "settings_model.html",
        "model",
        notice=notice,
        entered=entered,
        model=await queries.get_settings(request.work, request.actor.workspace_id),
        seconds=DEFAULT_SECONDS,
        most_seconds=MAX_SECONDS,
    )

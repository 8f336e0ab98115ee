"""Secrets: their names, a new value for one, and its end. No page shows a value."""

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
    turning,
)
from api.kernel.routing import ApiRequest, Cursor
from models.automation.secrets import commands, queries
from models.automation.secrets.shapes import PutSecret, SecretBody
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from runtime.errors import PlatformError

router = page_router()

SECRETS = f"{SETTINGS}/secrets"


@router.get(SECRETS, access=reads(Scope.INTEGRATIONS_READ))
async def get_secrets(
    request: ApiRequest, cursor: Cursor = None, notice: Notice | None = None
) -> Response:
    """Look through the names of the secrets of a workspace."""
    return await _shown(request, cursor, notice=notice)


@router.post(SECRETS, access=changes(Scope.INTEGRATIONS_WRITE))
async def put_secret_by_form(request: ApiRequest, body: Fields) -> Response:
    """Store a secret, or give it another value."""
    name = body.texts.get("name", "")

    async def put() -> SecretBody:
        wanted = read_as(PutSecret, {"value": body.texts.get("secretValue", "")})
        return await commands.put_secret(
            request.work, request.actor, request.services.keys, name, wanted
        )

    outcome = await attempt(request, put)
    if isinstance(outcome, PlatformError):
        return await _shown(request, None, entered=Entered({"name": name}, outcome))
    return led_to(request, "secrets", notice=Notice.SAVED)


@router.post(f"{SECRETS}/{{secretName}}/delete", access=changes(Scope.INTEGRATIONS_WRITE))
async def delete_secret_by_form(request: ApiRequest) -> Response:
    """Delete a secret."""
    name = request.path_params["secretName"]
    await commands.delete_secret(request.work, request.actor, name)
    return led_to(request, "secrets", notice=Notice.REMOVED)


async def _shown(
    request: ApiRequest,
    cursor: str | None,
    *,
    entered: Entered = BLANK,
    notice: Notice | None = None,
) -> Response:
    wanted = request.page("secrets", DEFAULT_LIMIT, cursor)
    listed = await queries.list_secrets(request.work, request.actor, wanted)
    return await settings_page(
        request,
        "settings_secrets.html",
        "secrets",
        secrets=listed.secrets,
        turning=turning(request, cursor, listed.cursor),
        entered=entered,
        notice=notice,
    )

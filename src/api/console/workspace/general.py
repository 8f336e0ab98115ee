"""The first page of the settings: what the workspace is called, and its end."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.rendering import see_other
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
from models.people.workspaces import commands
from models.people.workspaces.queries import get_workspace
from models.people.workspaces.shapes import UpdateWorkspace, WorkspaceEntry
from runtime.errors import PlatformError, ValidationError

router = page_router()


@router.get(SETTINGS, access=reads(Scope.WORKSPACE_READ))
async def get_settings(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the name, the address and the icon of a workspace."""
    return await _shown(request, BLANK, notice=notice)


@router.post(SETTINGS, access=changes(Scope.WORKSPACE_UPDATE))
async def change_settings(request: ApiRequest, body: Fields) -> Response:
    """Change the name, the address or the icon of a workspace."""
    texts = body.texts

    async def change() -> WorkspaceEntry:
        # The icon that was emptied goes.
        wanted = read_as(UpdateWorkspace, {"name": "", "slug": "", "icon": None, **texts})
        return await commands.update_workspace(request.work, request.actor, wanted)

    outcome = await attempt(request, change)
    if isinstance(outcome, PlatformError):
        return await _shown(request, Entered(texts, outcome))
    return led_to(request, notice=Notice.SAVED)


@router.post(f"{SETTINGS}/delete", access=changes(Scope.WORKSPACE_DELETE))
async def delete_workspace_by_form(request: ApiRequest, body: Fields) -> Response:
    """Delete a workspace whose name was typed."""
    actor = request.actor
    entry = await get_workspace(request.work, actor.principal, actor.workspace_id, actor.role)
    if body.texts.get("confirmation") != entry.workspace.name:
        wrong = ValidationError.at("confirmation", "Type the name of the workspace to delete it.")
        return await _shown(request, Entered(body.texts, wrong))
    await commands.delete_workspace(request.work, actor)
    return see_other("/")


async def _shown(request: ApiRequest, entered: Entered, **context: object) -> Response:
    return await settings_page(
        request, "settings_general.html", "general", entered=entered, every=len(Scope), **context
    )

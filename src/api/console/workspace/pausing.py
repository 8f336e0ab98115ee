"""The pause of a workspace, as a page of the settings."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, read_as
from api.console.pauses import Pause, Resume, take
from api.console.routing import page_router
from api.console.workspace.settings import SETTINGS, changes, reads, settings_page, settings_path
from api.kernel.routing import ApiRequest
from models.core.access.rules import Scope
from models.core.pauses.queries import answer
from models.core.pauses.rules import PauseSubject
from models.core.pauses.shapes import PauseWork, ResumeWork
from models.workspace.pauses import commands

router = page_router()

_PAUSE = f"{SETTINGS}/pause"
_CHANGE = changes(Scope.WORKSPACE_UPDATE)


@router.get(_PAUSE, access=reads(Scope.WORKSPACE_READ))
async def get_workspace_pause_page(request: ApiRequest) -> Response:
    """Look at the pause of a workspace."""
    return await _page(request, BLANK)


@router.post(_PAUSE, access=_CHANGE)
async def pause_workspace_by_form(request: ApiRequest, body: Pause) -> Response:
    """Pause a workspace."""

    async def pause() -> None:
        place = PauseSubject.WORKSPACE, request.actor.workspace_id
        wanted = read_as(PauseWork, body.values)
        await commands.pause(request.work, request.actor, *place, wanted)

    return await take(request, pause, {"reason": body.reason}, _page, _path(request))


@router.post(f"{_PAUSE}/resume", access=_CHANGE)
async def resume_workspace_by_form(request: ApiRequest, body: Resume) -> Response:
    """Resume a workspace."""

    async def resume() -> None:
        place = PauseSubject.WORKSPACE, request.actor.workspace_id
        wanted = read_as(ResumeWork, body.values)
        await commands.resume(request.work, request.actor, *place, wanted)

    return await take(request, resume, {"rate": body.rate}, _page, _path(request))


async def _page(request: ApiRequest, entered: Entered) -> Response:
    workspace_id = request.actor.workspace_id
    return await settings_page(
        request,
        "settings_pause.html",
        "pause",
        entered=entered,
        path=_path(request),
        pause=await answer(request.work, workspace_id, workspace_id),
    )


def _path(request: ApiRequest) -> str:
    return settings_path(request, "pause")

"""The pause of a connection: what would call through it waits."""

from dataclasses import replace

from starlette.responses import Response

from api.console.entered import BLANK, Entered, read_as
from api.console.forms import paged
from api.console.pauses import Pause, Resume, take
from api.console.rendering import page
from api.console.routing import page_router
from api.console.shell import home_of, shell_of
from api.console.words import curl
from api.kernel.routing import ApiRequest
from api.routers.sources.connections import CONNECTION, READ, WRITE
from models.core.pauses.shapes import PauseWork
from models.sources.connections.queries import get_connection
from models.sources.outbound_limits.pauses import pause_of
from models.sources.outbound_limits.rules import MOST_RELEASED
from models.sources.outbound_limits.shapes import ResumeConnection
from models.workspace.pauses import commands

router = page_router()

_PAUSE = f"{CONNECTION.removeprefix('/v1')}/pause"
_CHANGE = replace(paged(WRITE), joins=True)


@router.get(_PAUSE, access=paged(READ))
async def get_connection_pause_page(request: ApiRequest) -> Response:
    """Look at the pause of a connection."""
    return await _page(request, BLANK)


@router.post(_PAUSE, access=_CHANGE)
async def pause_connection_by_form(request: ApiRequest, body: Pause) -> Response:
    """Pause a connection."""

    async def pause() -> None:
        wanted = read_as(PauseWork, body.values)
        connection_id = request.ids["connectionId"]
        await commands.pause_connection(request.work, request.actor, connection_id, wanted)

    return await take(request, pause, {"reason": body.reason}, _page, _path(request))


@router.post(f"{_PAUSE}/resume", access=_CHANGE)
async def resume_connection_by_form(request: ApiRequest, body: Resume) -> Response:
    """Resume a connection."""

    async def resume() -> None:
        wanted = read_as(ResumeConnection, body.values)
        connection_id = request.ids["connectionId"]
        await commands.resume_connection(request.work, request.actor, connection_id, wanted)

    return await take(request, resume, {"rate": body.rate}, _page, _path(request))


async def _page(request: ApiRequest, entered: Entered) -> Response:
    connection = await get_connection(request.work, request.actor, request.ids["connectionId"])
    shell = await shell_of(request)
    call = f"/v1{_path(request)}"
    return page(
        request,
        "connection_pause.html",
        shell,
        connection=connection,
        path=_path(request),
        pause=await pause_of(request.work, request.actor, connection.id),
        entered=entered,
        most=MOST_RELEASED,
        calls={
            "Read it": curl(shell.base, "GET", call),
            "Pause": curl(shell.base, "POST", call, '{"reason": "The provider is down."}'),
            "Resume": curl(shell.base, "POST", f"{call.removesuffix('pause')}resume", "{}"),
        },
    )


def _path(request: ApiRequest) -> str:
    home, connection_id = home_of(request.actor.workspace_id), request.ids["connectionId"]
    return f"{home}/integrations/connections/{connection_id}/pause"

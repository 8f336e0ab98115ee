"""The pause of an automation: begun with a reason, ended at once or at a rate."""

from dataclasses import replace

from starlette.responses import Response

from api.console.forms import Form, paged
from api.console.refusals import refuse
from api.console.rendering import page, see_other
from api.console.shell import shell_of
from api.console.words import curl
from api.console.workspace.entered import BLANK, Entered, attempt, read_as
from api.kernel.routing import ApiRequest, Router
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from models.automation.automations import queries
from models.automation.circuit_breakers.queries import answer as breaker_of
from models.core.pauses.queries import answer
from models.core.pauses.rules import PauseSubject
from models.core.pauses.shapes import PauseWork, ResumeWork
from models.workspace.pauses import commands
from runtime.errors import PlatformError

router = Router(tags=["console"], refuse=refuse)

_PAUSE = f"{AUTOMATION.removeprefix('/v1')}/pause"
_CHANGE = replace(paged(WRITE), joins=True)


class Pause(Form):
    """The reason, which is shown wherever a run rests."""

    reason: str = ""


class Resume(Form):
    """Runs a minute; all at once without a number."""

    rate: str = ""


@router.get(_PAUSE, access=paged(READ), documented=False)
async def get_pause_page(request: ApiRequest) -> Response:
    """Look at the pause of an automation, and at its circuit breaker."""
    return await _page(request, BLANK)


@router.post(_PAUSE, access=_CHANGE, documented=False)
async def pause_by_form(request: ApiRequest, body: Pause) -> Response:
    """Pause an automation."""

    async def pause() -> None:
        wanted = read_as(PauseWork, {"reason": body.reason})
        place = PauseSubject.AUTOMATION, request.ids["automationId"]
        await commands.pause(request.work, request.actor, *place, wanted)

    outcome = await attempt(request, pause)
    if isinstance(outcome, PlatformError):
        return await _page(request, Entered({"reason": body.reason}, outcome))
    return see_other(_path(request))


@router.post(f"{_PAUSE}/resume", access=_CHANGE, documented=False)
async def resume_by_form(request: ApiRequest, body: Resume) -> Response:
    """Resume an automation, and close its circuit breaker."""

    async def resume() -> None:
        rate = int(body.rate) if body.rate.isdecimal() else body.rate or None
        wanted = read_as(ResumeWork, {"rate": rate})
        place = PauseSubject.AUTOMATION, request.ids["automationId"]
        await commands.resume(request.work, request.actor, *place, wanted)

    outcome = await attempt(request, resume)
    if isinstance(outcome, PlatformError):
        return await _page(request, Entered({"rate": body.rate}, outcome))
    return see_other(_path(request))


async def _page(request: ApiRequest, entered: Entered) -> Response:
    automation = await queries.summary(request.work, request.actor, request.ids["automationId"])
    place = request.work, request.actor.workspace_id, automation.id
    shell = await shell_of(request)
    call = f"/v1{_path(request)}"
    response = page(
        request,
        "pause.html",
        shell,
        automation=automation,
        path=_path(request),
        pause=await answer(*place),
        breaker=await breaker_of(*place),
        entered=entered,
        may_act=await queries.may_edit(request.work, request.actor, automation.id),
        calls={
            "Read it": curl(shell.base, "GET", call),
            "Pause": curl(shell.base, "POST", call, '{"reason": "The shop moves."}'),
            "Resume": curl(shell.base, "POST", f"{call.removesuffix('pause')}resume", "{}"),
        },
    )
    if entered.refusal is not None:
        response.status_code = entered.refusal.status
    return response


def _path(request: ApiRequest) -> str:
    workspace_id, automation_id = request.workspace_id, request.ids["automationId"]
    return f"/workspaces/{workspace_id}/automations/{automation_id}/pause"

"""The pause of an automation, and its circuit breaker, by which it is paused by itself."""

from dataclasses import replace

from starlette.responses import Response

from api.console.automations.content import path_of
from api.console.entered import BLANK, Entered, read_as
from api.console.forms import Form, number_of, paged
from api.console.pauses import Pause, Resume, take
from api.console.rendering import page
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import ApiRequest
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from models.automation.automations import queries
from models.automation.circuit_breakers import commands as breakers
from models.automation.circuit_breakers.queries import answer as breaker_of
from models.automation.circuit_breakers.shapes import SetCircuitBreaker
from models.core.pauses.queries import answer
from models.core.pauses.rules import PauseSubject
from models.core.pauses.shapes import PauseWork, ResumeWork
from models.workspace.pauses import commands

router = page_router()

_AUTOMATION = AUTOMATION.removeprefix("/v1")
_PAUSE = f"{_AUTOMATION}/pause"
_BREAKER = f"{_AUTOMATION}/circuit-breaker"
_CHANGE = replace(paged(WRITE), joins=True)


class Breaker(Form):
    """The numbers of a circuit breaker."""

    failures: str = ""
    pause_seconds: str = ""


@router.get(_PAUSE, access=paged(READ))
async def get_pause_page(request: ApiRequest) -> Response:
    """Look at the pause of an automation, and at its circuit breaker."""
    return await _page(request, BLANK)


@router.post(_PAUSE, access=_CHANGE)
async def pause_by_form(request: ApiRequest, body: Pause) -> Response:
    """Pause an automation."""

    async def pause() -> None:
        wanted = read_as(PauseWork, body.values)
        place = PauseSubject.AUTOMATION, request.ids["automationId"]
        await commands.pause(request.work, request.actor, *place, wanted)

    return await take(request, pause, {"reason": body.reason}, _page, _path(request))


@router.post(f"{_PAUSE}/resume", access=_CHANGE)
async def resume_by_form(request: ApiRequest, body: Resume) -> Response:
    """Resume an automation, and close its circuit breaker."""

    async def resume() -> None:
        wanted = read_as(ResumeWork, body.values)
        place = PauseSubject.AUTOMATION, request.ids["automationId"]
        await commands.resume(request.work, request.actor, *place, wanted)

    return await take(request, resume, {"rate": body.rate}, _page, _path(request))


@router.post(_BREAKER, access=_CHANGE)
async def set_breaker_by_form(request: ApiRequest, body: Breaker) -> Response:
    """Give an automation a circuit breaker, or change its numbers."""
    texts = {"failures": body.failures, "pauseSeconds": body.pause_seconds}

    async def change() -> None:
        numbers = {name: number_of(text) for name, text in texts.items()}
        place = request.actor.workspace_id, request.ids["automationId"]
        await breakers.set_breaker(request.work, *place, read_as(SetCircuitBreaker, numbers))

    return await take(request, change, texts, _page, _path(request))


@router.post(f"{_BREAKER}/remove", access=_CHANGE)
async def remove_breaker_by_form(request: ApiRequest) -> Response:
    """Take the circuit breaker from an automation."""

    async def remove() -> None:
        place = request.actor.workspace_id, request.ids["automationId"]
        await breakers.remove_breaker(request.work, *place)

    return await take(request, remove, {}, _page, _path(request))


async def _page(request: ApiRequest, entered: Entered) -> Response:
    automation = await queries.summary(request.work, request.actor, request.ids["automationId"])
    place = request.work, request.actor.workspace_id, automation.id
    shell = await shell_of(request)
    call = f"/v1{_path(request)}"
    breaker = f"{call.removesuffix('pause')}circuit-breaker"
    return page(
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
            "Circuit breaker": curl(
                shell.base, "PUT", breaker, '{"failures": 5, "pauseSeconds": 300}'
            ),
        },
    )


def _path(request: ApiRequest) -> str:
    return f"{path_of(request)}/pause"

"""The canary of an automation: started at a share, watched, promoted and taken back."""

from dataclasses import replace

from starlette.responses import Response

from api.console.automations.content import path_of
from api.console.entered import BLANK, Entered, attempt, read_as
from api.console.forms import Form, paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl, plain
from api.kernel.routing import ApiRequest
from api.routers.automation.automations import READ, WRITE
from api.routers.automation.canaries import CANARY
from models.automation.automation_runs import canary_releases
from models.automation.automation_runs.canary_shapes import CanaryAnswer, StartCanary
from models.automation.automation_runs.rules import RunStatus
from models.automation.automations import queries
from models.core.base import JsonObject
from runtime.errors import ConflictError, PlatformError, ValidationError

router = page_router()

_CANARY = CANARY.removeprefix("/v1")
_CHANGE = replace(paged(WRITE), joins=True)
_OFFERED = 50
STATUSES = [(one, plain(one)) for one in RunStatus]


class Start(Form):
    """The share in percent, and the version; none stands for the open draft."""

    percent: str = ""
    version_id: str | None = None
    draft_version_id: str | None = None


@router.get(_CANARY, access=paged(READ))
async def get_canary_page(request: ApiRequest) -> Response:
    """Look at the canary of an automation, or at what a canary can be."""
    return await _page(request, BLANK)


@router.post(_CANARY, access=_CHANGE, errors=[ConflictError])
async def start_canary_by_form(request: ApiRequest, body: Start) -> Response:
    """Publish a version, and let a share of runs try it."""

    async def start() -> CanaryAnswer:
        values: JsonObject = {"percent": _percent(body.percent)}
        if body.version_id:
            values["versionId"] = body.version_id
        elif body.draft_version_id:
            values["expectedDraftVersionId"] = body.draft_version_id
        wanted = read_as(StartCanary, values)
        place = request.services.keys, request.ids["automationId"], request.new_id
        return await canary_releases.start(request.work, request.actor, *place, wanted)

    outcome = await attempt(request, start)
    if isinstance(outcome, PlatformError):
        return await _page(request, Entered({"percent": body.percent}, outcome))
    return see_other(_path(request))


@router.post(f"{_CANARY}/promote", access=_CHANGE, errors=[ConflictError])
async def promote_canary_by_form(request: ApiRequest) -> Response:
    """Let every run take the candidate."""
    automation_id = request.ids["automationId"]
    await canary_releases.promote(request.work, request.actor, automation_id)
    return see_other(_path(request).removesuffix("/canary"))


@router.post(f"{_CANARY}/stop", access=_CHANGE, errors=[ConflictError])
async def stop_canary_by_form(request: ApiRequest) -> Response:
    """Publish the version from before again."""
    keys, automation_id = request.services.keys, request.ids["automationId"]
    await canary_releases.stop(request.work, request.actor, keys, automation_id)
    return see_other(_path(request).removesuffix("/canary"))


async def _page(request: ApiRequest, entered: Entered) -> Response:
    work, actor, automation_id = request.work, request.actor, request.ids["automationId"]
    automation = await queries.summary(work, actor, automation_id)
    offered = request.page("automation_versions", _OFFERED, None, automation_id)
    versions = (await queries.list_versions(work, actor, automation_id, offered)).versions
    shell = await shell_of(request)
    call = f"/v1{_path(request)}"
    return page(
        request,
        "canary.html",
        shell,
        automation=automation,
        canary=(await canary_releases.canary(work, actor, automation_id)).canary,
        earlier=[one for one in versions if one.published_at and one.status == "archived"],
        may_act=await queries.may_edit(work, actor, automation_id),
        statuses=STATUSES,
        entered=entered,
        calls={
            "Read it": curl(shell.base, "GET", call),
            "Start it": curl(shell.base, "POST", call, '{"percent": 10}'),
            "Promote it": curl(shell.base, "POST", f"{call}/promote", "{}"),
            "Stop it": curl(shell.base, "POST", f"{call}/stop", "{}"),
        },
    )


def _percent(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValidationError.at("percent", "It must be a number between 0 and 100.") from None


def _path(request: ApiRequest) -> str:
    return f"{path_of(request)}/canary"

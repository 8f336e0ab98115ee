"""The settings of an automation: trigger, webhook, name, copy, end, pause and canary."""

from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from api.console.automations.routes import automation_of, path_of
from api.console.entered import BLANK, Entered, Form, read_as, redisplays
from api.console.forms import Pause, Resume, number_of, paged
from api.console.rendering import Shell, console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.words import duration, plain, queried
from api.console.workspace.settings import Notice
from api.kernel.routing import ApiRequest
from api.routers.automation import automation_runs as runs_api
from api.routers.automation import automations as api
from api.routers.automation import webhooks as webhooks_api
from api.routers.automation.automations import AUTOMATION, CANARY, READ, WRITE
from api.routers.workspace import pauses as pauses_api
from models.automation import circuit_breakers as breakers
from models.automation.automation_runs import canary_releases
from models.automation.automation_runs.canary_releases import StartCanary
from models.automation.automation_runs.rules import RunStatus
from models.automation.automations import commands, queries, shapes
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.automation.automations.schedules import preview_stored
from models.automation.circuit_breakers import SetCircuitBreaker
from models.automation.circuit_breakers import read_breaker as breaker_of
from models.core.base import JsonObject
from models.core.pauses.rules import PauseSubject
from models.core.pauses.store import PauseWork, ResumeWork, answer
from models.workspace import pauses
from runtime.errors import ConflictError, ValidationError

router = page_router()

_AUTOMATION = AUTOMATION.removeprefix("/v1")
_SHOW = replace(paged(WRITE), idempotent=False)
_CHANGE = replace(paged(WRITE), joins=True)
_SHOWN_TIMES = 10


class Rename(Form):
    """The new name."""

    label: str = ""


@router.get(f"{_AUTOMATION}/settings", access=_SHOW)
async def get_automation_settings(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the trigger, the webhook and the name of an automation."""
    return await _settings(request, BLANK, notice)


async def _settings(
    request: ApiRequest, entered: Entered, notice: Notice | None = None
) -> Response:
    automation = await automation_of(request)
    shell = await shell_of(request)
    preview, problem = await _preview(request, automation)
    return page(
        request,
        "automation_settings.html",
        shell,
        automation=automation,
        at=path_of(request),
        entered=entered,
        notice=notice,
        trigger=None if automation.trigger_config is None else in_words(automation.trigger_config),
        preview=preview,
        problem=problem,
        is_webhook=automation.trigger is TriggerKind.WEBHOOK,
        api=_calls(shell),
    )


@router.post(f"{_AUTOMATION}/settings/rename", access=_CHANGE)
@redisplays(_settings)
async def rename_automation(request: ApiRequest, body: Rename) -> Response:
    """Give an automation another name."""
    wanted = read_as(shapes.UpdateAutomation, {"label": body.label})
    place = request.services.keys, request.ids["automationId"]
    await commands.update_automation(request.work, request.actor, *place, wanted)
    return see_other(queried(f"{path_of(request)}/settings", notice=Notice.SAVED))


@router.post(f"{_AUTOMATION}/settings/webhook-secret", access=_CHANGE)
async def rotate_webhook_secret_by_form(request: ApiRequest) -> Response:
    """Give the webhook a new secret, and show it this once."""
    keys, automation_id = request.services.keys, request.ids["automationId"]
    await commands.rotate_webhook_secret(request.work, request.actor, keys, automation_id)
    automation = await automation_of(request)
    return await console_page(
        request,
        "webhook_secret.html",
        automation=automation,
        at=path_of(request),
        secret=automation.webhook_secret,
        hours=int(commands.OVERLAP.total_seconds()) // 3600,
    )


@router.get(f"{_AUTOMATION}/settings/webhook-secret", access=_SHOW)
async def get_rotated_webhook_secret(request: ApiRequest) -> Response:
    """Lead to the settings: the secret is not shown again."""
    return see_other(f"{path_of(request)}/settings")


act(
    router,
    f"{_AUTOMATION}/duplicate",
    api.duplicate_automation,
    then="/workspaces/{workspaceId}/automations/{answer.id}",
)


act(
    router,
    f"{_AUTOMATION}/delete",
    api.delete_automation,
    then="/workspaces/{workspaceId}/automations",
)


async def _preview(
    request: ApiRequest, automation: shapes.AutomationDetail
) -> tuple[shapes.SchedulePreview | None, str]:
    """The next due times of a schedule, or why there are none."""
    if automation.trigger is not TriggerKind.SCHEDULE:
        return None, ""
    place = request.work, request.actor, automation.id
    try:
        return await preview_stored(*place, _SHOWN_TIMES, None), ""
    except ValidationError as error:
        return None, error.message


def _calls(shell: Shell) -> dict[str, str]:
    return shell.calls(
        runs_api.get_schedule_preview,
        (api.update_automation, {"label": "Orders"}),
        webhooks_api.rotate_webhook_secret,
        api.duplicate_automation,
        api.delete_automation,
    )


TRIGGER_SENTENCES: Mapping[TriggerKind, str] = {
    TriggerKind.MANUAL: "Runs manually or through the API.",
    TriggerKind.SCHEDULE: "Runs on a schedule.",
    TriggerKind.WEBHOOK: "Runs when its webhook is called.",
    TriggerKind.RECORD_CREATED: "Runs when a record is created.",
    TriggerKind.RECORD_UPDATED: "Runs when a record is updated.",
    TriggerKind.RECORD_DELETED: "Runs when a record is deleted.",
    TriggerKind.RECORD_MATCHES: "Runs when a record matches a filter.",
    TriggerKind.RECORD_DATE_REACHED: "Runs when a date in a record is reached.",
    TriggerKind.FORM_SUBMITTED: "Runs when a form is submitted.",
    TriggerKind.BUTTON_PRESSED: "Runs when a button in a record is pressed.",
    TriggerKind.DATA_SOURCE_FINISHED: "Runs when a data source refresh finishes.",
    TriggerKind.AUTOMATION_FAILED: "Runs when another automation fails.",
    TriggerKind.AUTOMATION_CALLED: "Runs when another automation calls it.",
    TriggerKind.TIME_ENTRY_COMPLETED: "Runs when a time entry is completed.",
}


def in_words(config: JsonObject) -> str:
    """A trigger as a sentence."""
    kind = TriggerKind(config["kind"])
    if kind is TriggerKind.SCHEDULE:
        return _schedule(config)
    if kind is TriggerKind.WEBHOOK and config.get("respond") == "wait":
        return "Runs when its webhook is called, and returns a response to the caller."
    return TRIGGER_SENTENCES[kind]


def _schedule(config: JsonObject) -> str:
    zone = config.get("timezone") or "UTC"
    if config.get("intervalSeconds"):
        return f"Runs every {duration(config['intervalSeconds'])}."
    return f"Runs on the cron schedule {config.get('cron')} ({zone})."


_PAUSE = f"{_AUTOMATION}/pause"
_BREAKER = f"{_AUTOMATION}/circuit-breaker"


class Breaker(Form):
    """The numbers of a circuit breaker."""

    failures: str = ""
    pause_seconds: str = ""


@router.get(_PAUSE, access=paged(READ))
async def get_pause_page(request: ApiRequest) -> Response:
    """Look at the pause of an automation, and at its circuit breaker."""
    return await _pause_page(request, BLANK)


async def _pause_page(request: ApiRequest, entered: Entered) -> Response:
    automation = await queries.summary(request.work, request.actor, request.ids["automationId"])
    place = request.work, request.actor.workspace_id, automation.id
    return await console_page(
        request,
        "pause.html",
        pauses_api.get_automation_pause,
        (pauses_api.pause_automation, {"reason": "Maintenance until noon"}),
        pauses_api.resume_automation,
        (api.set_circuit_breaker, {"failures": 5, "pauseSeconds": 300}),
        automation=automation,
        path=_pause_path(request),
        pause=await answer(*place),
        breaker=await breaker_of(*place),
        entered=entered,
        may_act=await queries.may_edit(request.work, request.actor, automation.id),
    )


@router.post(_PAUSE, access=_CHANGE)
@redisplays(_pause_page)
async def pause_by_form(request: ApiRequest, body: Pause) -> Response:
    """Pause an automation."""
    wanted = read_as(PauseWork, body.values)
    place = PauseSubject.AUTOMATION, request.ids["automationId"]
    await pauses.pause(request.work, request.actor, *place, wanted)
    return see_other(_pause_path(request))


@router.post(f"{_PAUSE}/resume", access=_CHANGE)
@redisplays(_pause_page)
async def resume_by_form(request: ApiRequest, body: Resume) -> Response:
    """Resume an automation, and close its circuit breaker."""
    wanted = read_as(ResumeWork, body.values)
    place = PauseSubject.AUTOMATION, request.ids["automationId"]
    await pauses.resume(request.work, request.actor, *place, wanted)
    return see_other(_pause_path(request))


@router.post(_BREAKER, access=_CHANGE)
@redisplays(_pause_page)
async def set_breaker_by_form(request: ApiRequest, body: Breaker) -> Response:
    """Give an automation a circuit breaker, or change its numbers."""
    texts = {"failures": body.failures, "pauseSeconds": body.pause_seconds}

    numbers = {name: number_of(text) for name, text in texts.items()}
    place = request.actor.workspace_id, request.ids["automationId"]
    await breakers.set_breaker(request.work, *place, read_as(SetCircuitBreaker, numbers))
    return see_other(_pause_path(request))


@router.post(f"{_BREAKER}/remove", access=_CHANGE)
@redisplays(_pause_page)
async def remove_breaker_by_form(request: ApiRequest) -> Response:
    """Take the circuit breaker from an automation."""
    place = request.actor.workspace_id, request.ids["automationId"]
    await breakers.remove_breaker(request.work, *place)
    return see_other(_pause_path(request))


def _pause_path(request: ApiRequest) -> str:
    return f"{path_of(request)}/pause"


_CANARY = CANARY.removeprefix("/v1")

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
    return await _canary_page(request, BLANK)


async def _canary_page(request: ApiRequest, entered: Entered) -> Response:
    work, actor, automation_id = request.work, request.actor, request.ids["automationId"]
    automation = await queries.summary(work, actor, automation_id)
    offered = request.page("automation_versions", _OFFERED, None, automation_id)
    versions = (await queries.list_versions(work, actor, automation_id, offered)).versions
    return await console_page(
        request,
        "canary.html",
        api.get_canary,
        (api.start_canary, {"percent": 10}),
        api.promote_canary,
        api.stop_canary,
        automation=automation,
        canary=(await canary_releases.canary(work, actor, automation_id)).canary,
        earlier=[one for one in versions if one.published_at and one.status == "archived"],
        may_act=await queries.may_edit(work, actor, automation_id),
        statuses=STATUSES,
        entered=entered,
    )


@router.post(_CANARY, access=_CHANGE, errors=[ConflictError])
@redisplays(_canary_page)
async def start_canary_by_form(request: ApiRequest, body: Start) -> Response:
    """Publish a version, and let a share of runs try it."""
    values: JsonObject = {"percent": _percent(body.percent)}
    if body.version_id:
        values["versionId"] = body.version_id
    elif body.draft_version_id:
        values["expectedDraftVersionId"] = body.draft_version_id
    wanted = read_as(StartCanary, values)
    place = request.services.keys, request.ids["automationId"], request.new_id
    await canary_releases.start(request.work, request.actor, *place, wanted)
    return see_other(_canary_path(request))


act(router, f"{_CANARY}/promote", api.promote_canary, then=_AUTOMATION)


act(router, f"{_CANARY}/stop", api.stop_canary, then=_AUTOMATION)


def _percent(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValidationError.at("percent", "Enter a number between 0 and 100.") from None


def _canary_path(request: ApiRequest) -> str:
    return f"{path_of(request)}/canary"

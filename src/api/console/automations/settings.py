"""The settings of an automation: its trigger, its webhook, its name, a copy, and its end."""

from dataclasses import replace

from starlette.responses import Response

from api.console.automations.content import automation_of, path_of
from api.console.automations.trigger_words import in_words
from api.console.entered import BLANK, Entered, attempt, read_as
from api.console.forms import Form, paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import Shell, shell_of
from api.console.words import curl, queried
from api.console.workspace.settings import Notice
from api.kernel.routing import ApiRequest
from api.routers.automation.automations import AUTOMATION, WRITE
from models.automation.automations import commands, queries, webhook_secrets
from models.automation.automations.previews import preview_stored
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.automation.automations.shapes import (
    AutomationDetail,
    SchedulePreview,
    UpdateAutomation,
)
from models.core.access.rules import Level
from models.workspace.targets.commands import duplication
from runtime.errors import ConflictError, PlatformError, ValidationError

router = page_router()

_ONE = AUTOMATION.removeprefix("/v1")
_SHOW = replace(paged(WRITE), idempotent=False)
_CHANGE = replace(paged(WRITE), joins=True)
_COPY = replace(_CHANGE, level=Level.VIEW)
_SHOWN_TIMES = 10


class Rename(Form):
    """The new name."""

    label: str = ""


@router.get(f"{_ONE}/settings", access=_SHOW)
async def get_automation_settings(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at the trigger, the webhook and the name of an automation."""
    return await _settings(request, BLANK, notice)


@router.post(f"{_ONE}/settings/rename", access=_CHANGE)
async def rename_automation(request: ApiRequest, body: Rename) -> Response:
    """Give an automation another name."""

    async def rename() -> AutomationDetail:
        wanted = read_as(UpdateAutomation, {"label": body.label})
        place = request.services.keys, request.ids["automationId"]
        return await commands.update_automation(request.work, request.actor, *place, wanted)

    outcome = await attempt(request, rename)
    if isinstance(outcome, PlatformError):
        return await _settings(request, Entered({"label": body.label}, outcome))
    return see_other(queried(f"{path_of(request)}/settings", notice=Notice.SAVED))


@router.post(f"{_ONE}/settings/webhook-secret", access=_CHANGE)
async def rotate_webhook_secret_by_form(request: ApiRequest) -> Response:
    """Give the webhook a new secret, and show it this once."""
    keys, automation_id = request.services.keys, request.ids["automationId"]
    await webhook_secrets.rotate_webhook_secret(request.work, request.actor, keys, automation_id)
    automation = await automation_of(request)
    return page(
        request,
        "webhook_secret.html",
        await shell_of(request),
        automation=automation,
        at=path_of(request),
        secret=automation.webhook_secret,
        hours=int(webhook_secrets.OVERLAP.total_seconds()) // 3600,
    )


@router.get(f"{_ONE}/settings/webhook-secret", access=_SHOW)
async def get_rotated_webhook_secret(request: ApiRequest) -> Response:
    """Lead to the settings: the secret is not shown again."""
    return see_other(f"{path_of(request)}/settings")


@router.post(f"{_ONE}/duplicate", access=_COPY, errors=[ConflictError])
async def duplicate_by_hand(request: ApiRequest) -> Response:
    """Copy an automation beside the original, and lead to the copy."""
    actor, keys = request.actor, request.services.keys
    automation = await queries.summary(request.work, actor, request.ids["automationId"])
    copied = await duplication.duplicate_item(
        request.work, actor, keys, automation.item_id, request.new_id
    )
    assert copied is not None, "only databases are copied later"
    return see_other(f"/workspaces/{request.workspace_id}/automations/{copied.target_id}")


@router.post(f"{_ONE}/delete", access=_CHANGE)
async def delete_by_hand(request: ApiRequest) -> Response:
    """Put an automation into the trash."""
    keys, automation_id = request.services.keys, request.ids["automationId"]
    await commands.delete_automation(request.work, request.actor, keys, automation_id)
    return see_other(f"/workspaces/{request.workspace_id}/automations")


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
        calls=_calls(shell, f"/v1{path_of(request)}"),
    )


async def _preview(
    request: ApiRequest, automation: AutomationDetail
) -> tuple[SchedulePreview | None, str]:
    """The next due times of a schedule, or why there are none."""
    if automation.trigger is not TriggerKind.SCHEDULE:
        return None, ""
    place = request.work, request.actor, automation.id
    try:
        return await preview_stored(*place, _SHOWN_TIMES, None), ""
    except ValidationError as error:
        return None, error.message


def _calls(shell: Shell, path: str) -> dict[str, str]:
    return {
        "Preview its schedule": curl(shell.base, "GET", f"{path}/schedule-preview"),
        "Rename it": curl(shell.base, "PATCH", path, '{"label": "Orders"}'),
        "Rotate its secret": curl(shell.base, "POST", f"{path}/rotate-webhook-secret"),
        "Duplicate it": curl(shell.base, "POST", f"{path}/duplicate"),
        "Delete it": curl(shell.base, "DELETE", path),
    }

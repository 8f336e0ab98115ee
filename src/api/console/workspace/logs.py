"""Logs of a workspace: its changes, its calls, and its usage with the plan."""

from starlette.responses import Response

from api.console.entered import Fields, read_as
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
from api.kernel.routing import ApiRequest, Cursor, Limit
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.people.api_keys import key_names
from models.people.request_logs import list_audit_log, page_of_requests
from models.people.users import display_names
from models.people.workspaces import ChangePlan, Plan, change_plan
from models.workspace.usage import get_usage

router = page_router()


@router.get(f"{SETTINGS}/audit", access=reads(Scope.WORKSPACE_UPDATE))
async def get_audit_log(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the changes made in a workspace."""
    wanted = request.page("audit log", DEFAULT_LIMIT, cursor)
    listed = await list_audit_log(request.work, request.actor, wanted)
    keys = {entry.api_key_id for entry in listed.entries if entry.api_key_id is not None}
    return await settings_page(
        request,
        "settings_audit.html",
        "audit",
        entries=listed.entries,
        names=await display_names(request.work, {entry.user_id for entry in listed.entries}),
        key_names=await key_names(request.work, request.actor, keys),
        turning=turning(request, cursor, listed.cursor),
    )


@router.get(f"{SETTINGS}/request-logs", access=reads(Scope.API_KEYS_READ))
async def get_request_logs(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Look through the calls made in a workspace."""
    wanted = request.page("pages of request logs", limit, cursor)
    listed = await page_of_requests(request.work, request.actor, wanted)
    keys = {one.api_key_id for one in listed.items if one.api_key_id is not None}
    people = {one.principal_id for one in listed.items if one.principal_id is not None}
    return await settings_page(
        request,
        "settings_request_logs.html",
        "request-logs",
        calls=listed.items,
        key_names=await key_names(request.work, request.actor, keys),
        names=await display_names(request.work, people - keys),
        limit=limit,
        limits=(30, 50, 100),
        turning=turning(request, cursor, listed.cursor, limit=limit),
    )


USAGE = f"{SETTINGS}/usage"


@router.get(USAGE, access=reads(Scope.BILLING_READ))
async def get_usage_page(request: ApiRequest, notice: Notice | None = None) -> Response:
    """Look at what a workspace holds, and what it did this month."""
    usage = await get_usage(request.work, request.actor)
    return await settings_page(
        request,
        "settings_usage.html",
        "usage",
        notice=notice,
        usage=usage,
        plans=list(Plan),
        holds=usage.holds.model_dump(exclude={"file_bytes"}),
    )


@router.post(f"{USAGE}/plan", access=changes(Scope.BILLING_MANAGE))
async def change_plan_by_form(request: ApiRequest, body: Fields) -> Response:
    """Put a workspace on another plan."""
    await change_plan(request.work, request.actor, read_as(ChangePlan, body.texts))
    return led_to(request, "usage", notice=Notice.SAVED)

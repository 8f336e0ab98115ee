"""Usage of a workspace, and its plan."""

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
)
from api.kernel.routing import ApiRequest
from models.core.access.rules import Scope
from models.people.workspaces.commands import change_plan
from models.people.workspaces.rules import Plan
from models.people.workspaces.shapes import ChangePlan
from models.workspace.usage.queries import get_usage

router = page_router()

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

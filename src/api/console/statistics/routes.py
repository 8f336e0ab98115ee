"""The statistics of the runs of a workspace, or of one automation."""

from starlette.responses import Response

from api.console.controls import chart_of
from api.console.forms import paged
from api.console.rendering import console_page
from api.console.routing import page_router
from api.console.runs.listing import automation_choices
from api.kernel.routing import Access, ApiRequest, QueryId
from api.routers.automation import many_runs as api
from models.automation.run_statistics.queries import get_statistics, span
from models.automation.run_statistics.sums import Grain
from models.core.access.rules import Level, Scope

router = page_router()

_PERIODS = (("hour", "Last 24 hours"), ("day", "Last 30 days"))


@router.get(
    "/workspaces/{workspaceId}/runs/statistics",
    access=paged(Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, heavy=True)),
)
async def get_statistics_page(
    request: ApiRequest, by: Grain = Grain.HOUR, automation_id: QueryId | None = None
) -> Response:
    """Look at how many runs ended, how, and how long they took."""
    over = span(request.work.now, by, None, None)
    statistics = await get_statistics(request.work, request.actor, automation_id, over)
    automations = await automation_choices(request, automation_id)
    return await console_page(
        request,
        "statistics.html",
        (api.get_run_statistics, {"by": by.value, "automationId": automation_id}),
        chart=chart_of(statistics),
        by=by.value,
        periods=_PERIODS,
        automation_id=automation_id,
        automations=automations,
        labels=dict(automations),
    )

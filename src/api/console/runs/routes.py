"""The list of runs and the page of one."""

from starlette.responses import Response

from api.console.entered import Entered, attempt
from api.console.forms import paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.runs import run_page
from api.console.runs.listing import (
    PAGE,
    PERIODS,
    SOURCES,
    STATUSES,
    Filters,
    Listing,
    automation_choices,
    counts_of,
    equal_calls,
    listing,
    version_choices,
)
from api.console.shell import shell_of
from api.console.words import queried
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.automation import automation_runs, automations, run_pages
from models.automation.automation_runs.queries import load_run
from models.automation.saved_run_filters.queries import list_filters
from models.core.access.rules import Level, Scope
from runtime.errors import PlatformError

router = page_router()

_MOST_FILTERS = 100
RUNS = "/workspaces/{workspaceId}/runs"


class ListedRuns(Filters):
    """The query of the list: its filters, and where its page begins."""

    cursor: Cursor = None


@router.get(
    RUNS, access=paged(Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, snapshot=True))
)
async def get_runs(request: ApiRequest, filters: ListedRuns) -> Response:
    """Look through the runs of a workspace."""
    cursor = filters.cursor
    outcome = await attempt(request, lambda: listing(request, filters, PAGE, cursor))
    refusal = outcome if isinstance(outcome, PlatformError) else None
    offered = request.page("run_filters", _MOST_FILTERS, None)
    saved_filters = (await list_filters(request.work, request.actor, offered)).filters
    shell = await shell_of(request)
    answer = page(
        request,
        "runs.html",
        shell,
        listed=Listing([], None) if isinstance(outcome, PlatformError) else outcome,
        entered=Entered({}, refusal),
        filters=filters,
        cursor=cursor,
        statuses=STATUSES,
        counts=await counts_of(request, filters.automation_id),
        sources=SOURCES,
        periods=PERIODS,
        automations=await automation_choices(request, filters.automation_id),
        versions=await version_choices(request, filters.automation_id),
        saved=saved_filters,
        active=next((one for one in saved_filters if one.query == filters.wire), None),
        calls=equal_calls(request, shell.base, filters),
    )
    # The address of a form has its empty fields, too.
    answer.headers["HX-Push-Url"] = queried(request.url.path, **filters.query(cursor=cursor))
    return answer


@router.get("/runs/{runId}", access=paged(run_pages.READ))
async def get_run_page(request: ApiRequest) -> Response:
    """Look at a run, and follow it while it goes on."""
    shell = await shell_of(request)
    content = await run_page.content_of(request, shell.base)
    return page(request, "run.html", shell, content=content)


@router.get(automation_runs.RUN.removeprefix("/v1"), access=paged(automations.READ))
async def get_run_of_automation(request: ApiRequest) -> Response:
    """Lead to the page of a run, from where its actions are."""
    ids = request.ids
    run = await load_run(request.work, request.actor, ids["automationId"], ids["runId"])
    return see_other(f"/runs/{run.id}")

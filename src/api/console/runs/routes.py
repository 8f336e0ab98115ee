"""The list of runs and the page of one."""

from starlette.responses import Response

from api.console.forms import paged
from api.console.refusals import refuse
from api.console.rendering import page, see_other
from api.console.runs import run_page
from api.console.runs.listing import (
    PAGE,
    PERIODS,
    SOURCES,
    STATUSES,
    Filters,
    Period,
    automation_choices,
    equal_call,
    listing,
)
from api.console.shell import shell_of
from api.console.words import queried
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId, Router
from api.routers.automation import automation_runs, automations, run_pages
from models.automation.automation_runs.queries import load_run
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.core.access.rules import Level, Scope

router = Router(tags=["console"], refuse=refuse)

RUNS = "/workspaces/{workspaceId}/runs"


@router.get(
    RUNS,
    access=paged(Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW)),
    documented=False,
)
async def get_runs(  # the filters of a list
    request: ApiRequest,
    cursor: Cursor = None,
    status: RunStatus | None = None,
    source: RunSource | None = None,
    automation_id: QueryId | None = None,
    period: Period | None = None,
) -> Response:
    """Look through the runs of a workspace."""
    filters = Filters(status=status, source=source, automation_id=automation_id, period=period)
    listed = await listing(request, filters, PAGE, cursor)
    shell = await shell_of(request)
    answer = page(
        request,
        "runs.html",
        shell,
        listed=listed,
        filters=filters,
        cursor=cursor,
        statuses=STATUSES,
        sources=SOURCES,
        periods=PERIODS,
        automations=await automation_choices(request, automation_id),
        call=equal_call(request, shell.base, filters),
    )
    # The address of a form has its empty fields, too.
    answer.headers["HX-Push-Url"] = queried(request.url.path, **filters.query(cursor=cursor))
    return answer


@router.get("/runs/{runId}", access=paged(run_pages.READ), documented=False)
async def get_run_page(request: ApiRequest) -> Response:
    """Look at a run, and follow it while it goes on."""
    shell = await shell_of(request)
    content = await run_page.content_of(request, shell.base)
    return page(request, "run.html", shell, content=content)


@router.get(
    automation_runs.RUN.removeprefix("/v1"), access=paged(automations.READ), documented=False
)
async def get_run_of_automation(request: ApiRequest) -> Response:
    """Lead to the page of a run, from where its actions are."""
    ids = request.ids
    run = await load_run(request.work, request.actor, ids["automationId"], ids["runId"])
    return see_other(f"/runs/{run.id}")

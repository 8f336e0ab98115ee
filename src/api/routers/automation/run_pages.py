"""The reads of the page of a run: all of it at first, the changes, and the files of pages."""

from starlette.responses import Response

from api.kernel.event_streams import EventStream, with_keepalive
from api.kernel.routing import Access, ApiRequest, Data, Router
from api.pages.assets import asset
from api.run_events import AutomationRunWatch, run_events
from api.run_links import add_links
from models.automation.run_overviews import queries
from models.automation.run_overviews.shapes import RunOverview
from models.core.access.rules import Level, Scope
from runtime.errors import NotFoundError

router = Router(tags=["run pages"])

RUN = "/v1/runs/{runId}"
READ = Access(
    scopes=[Scope.AUTOMATIONS_READ], resource="run", level=Level.VIEW, snapshot=True, cookie=True
)

_OPEN = Access(credential="none", transaction=False)


@router.get(RUN, access=READ)
async def get_run(request: ApiRequest) -> Data[RunOverview]:
    """Get a run by its id alone, with the graph it executes and how far each node has come."""
    found = await queries.overview(request.work, request.actor, request.ids["runId"])
    add_links(request.services.settings, found.run)
    return Data(found)


@router.get(f"{RUN}/events", access=READ, media_type="text/event-stream")
async def watch_run(request: ApiRequest) -> Response:
    """Watch a run: server-sent events until it ends.

    `state` holds the run and the nodes that changed, at first all; `end` says that the run has
    ended. A stream that stops without `end` is to be opened again.
    """
    watch = AutomationRunWatch(request.actor.workspace_id, request.ids["runId"])
    events = run_events(request.services, watch)
    return EventStream(request.services.streams, request.share, with_keepalive(events))


@router.get("/pages/{pageFile}", access=_OPEN, documented=False)
async def get_page_asset(request: ApiRequest) -> Response:
    """Read a file of the pages."""
    found = asset(request.path_params["pageFile"])
    if found is None:
        raise NotFoundError("path")
    return found

"""The reads of the page of a run of a data source or of an import: all of it, and the changes."""

from starlette.responses import Response

from api.kernel.event_streams import EventStream, with_keepalive
from api.kernel.routing import Access, ApiRequest, Data, Router
from api.run_events import SourceRunWatch, run_events
from api.run_links import temporal_link
from models.core.access.rules import Level, Scope
from models.sources.data_source_runs import overviews
from models.sources.data_source_runs.rules import family_of
from models.sources.data_source_runs.shapes import SourceRunOverview

router = Router(tags=["run pages"])

RUN = "/v1/data-source-runs/{dataSourceRunId}"
READ = Access(
    scopes=[Scope.DATA_SOURCES_READ],
    resource="data_source_run",
    level=Level.VIEW,
    snapshot=True,
    cookie=True,
)


@router.get(RUN, access=READ)
async def get_source_run(request: ApiRequest) -> Data[SourceRunOverview]:
    """Get a run of a data source, or an import, by its id alone.

    An import is its maker's, and that of owners and administrators.
    """
    found = await overviews.overview(request.work, request.actor, request.ids["dataSourceRunId"])
    workflow_id = family_of(found.data_source_id).workflow_id(found.id)
    found.metadata["temporal"] = temporal_link(request.services.settings, workflow_id)
    return Data(found)


@router.get(f"{RUN}/events", access=READ, media_type="text/event-stream")
async def watch_source_run(request: ApiRequest) -> Response:
    """Watch a run of a data source, or an import: server-sent events until it ends.

    `state` holds what has changed; `end` says that the run has ended. A stream that stops without
    `end` is to be opened again.
    """
    watch = SourceRunWatch(request.actor.workspace_id, request.ids["dataSourceRunId"])
    events = run_events(request.services, watch)
    return EventStream(request.services.streams, request.share, with_keepalive(events))

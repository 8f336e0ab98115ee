"""Data sources and their runs: create, preview, refresh, read, cancel, retry, revert."""

from dataclasses import replace
from typing import Annotated, cast

from pydantic import WithJsonSchema
from starlette.responses import Response

from api.kernel.responses import prefers
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Deletes, IfUnchanged, Limit, Router
from api.realtime.feeds import EventStream, with_keepalive
from api.run_events import SourceRunWatch, run_events, temporal_link
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.core.references.rules import SubjectKind
from models.sources.data_source_runs import acceptance, overviews, shapes
from models.sources.data_source_runs import queries as run_queries
from models.sources.data_source_runs.reversal import accept_reversal
from models.sources.data_source_runs.rules import workflow_kind_of
from models.sources.data_sources import commands, queries
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError, UpstreamError

router = Router(tags=["data sources"])

DATA_SOURCES = "/v1/workspaces/{workspaceId}/data-sources"
DATA_SOURCE = f"{DATA_SOURCES}/{{dataSourceId}}"

PREVIEW_SECONDS = 55

READ = Access(scopes=[Scope.DATA_SOURCES_READ], resource="data_source", level=Level.VIEW)
WRITE = Access(
    scopes=[Scope.DATA_SOURCES_WRITE], resource="data_source", level=Level.EDIT, idempotent=True
)


@router.post(
    DATA_SOURCES,
    access=Access(scopes=[Scope.DATA_SOURCES_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_data_source(
    request: ApiRequest, body: queries.CreateDataSource
) -> Data[overviews.DataSourceDetail]:
    """Create a data source.

    Without `targetDatabaseId` a database is made for its rows, which needs databases:write too.
    """
    created = await commands.create_data_source(request.work, request.actor, body)
    return Data(await overviews.detail(request.work, created))


@router.get(
    DATA_SOURCES,
    access=Access(scopes=[Scope.DATA_SOURCES_READ], level=Level.VIEW, cookie=True),
    calls=overviews.list_data_sources,
)
async def list_data_sources() -> None:
    """List data sources, newest first."""


@router.get(DATA_SOURCE, access=READ, calls=overviews.get_data_source)
async def get_data_source() -> None:
    """Get a data source."""


@router.patch(DATA_SOURCE, access=WRITE, errors=[ConflictError])
async def update_data_source(
    request: ApiRequest, body: queries.UpdateDataSource, if_match: IfUnchanged = None
) -> Data[overviews.DataSourceDetail]:
    """Update a data source; its kind cannot change, and `config` is replaced as a whole.

    With the header `If-Match: <updatedAt>` one that was changed since is left as it is.
    """
    data_source_id = request.ids["dataSourceId"]
    updated = await commands.update_data_source(
        request.work, request.actor, data_source_id, body, if_match
    )
    return Data(await overviews.detail(request.work, updated))


@router.delete(DATA_SOURCE, access=WRITE, deletes=Deletes(SubjectKind.DATA_SOURCE))
async def delete_data_source(request: ApiRequest) -> Data[overviews.DataSourceDetail]:
    """Put a data source into the trash with its item, for 30 days; its target stays."""
    data_source_id = request.ids["dataSourceId"]
    deleted = await commands.delete_data_source(request.work, request.actor, data_source_id)
    return Data(await overviews.detail(request.work, deleted))


@router.post(
    f"{DATA_SOURCES}/preview",
    access=Access(scopes=[Scope.DATA_SOURCES_WRITE], level=Level.EDIT, heavy=True, safe=True),
    errors=[InProgressError, UpstreamError],
)
async def preview_data_source(
    request: ApiRequest, body: queries.PreviewDataSource
) -> Data[queries.DataSourcePreview]:
    """Preview a data source: its first rows and the fields that its columns suggest.

    Nothing is stored. A source that cannot be fetched or read is a validation error.
    """
    actor, preview_id = request.actor, request.new_id
    await commands.accept_preview(request.work, actor, preview_id, body)

    async def poll(work: UnitOfWork, last: bool) -> queries.DataSourcePreview | None:
        return await commands.preview_outcome(work, actor, preview_id, last=last)

    async def forget(work: UnitOfWork) -> None:
        await commands.forget_preview(work, actor, preview_id)

    return request.deferred(poll, within=PREVIEW_SECONDS, then=forget)


BY_PAGE = replace(WRITE, cookie=True)
"""The demands of what the page of a run does."""

CSV = "text/csv"
FileFormat = Annotated[
    shapes.RejectFormat | None,
    WithJsonSchema({"type": "string", "enum": [one.value for one in shapes.RejectFormat]}),
]
WAIT_SECONDS = 25
RUNS = f"{DATA_SOURCE}/runs"
RUN = f"{RUNS}/{{runId}}"


@router.post(f"{DATA_SOURCE}/refresh", access=BY_PAGE)
async def refresh_data_source(
    request: ApiRequest, body: shapes.RefreshDataSource
) -> Data[shapes.DataSourceRunDetail]:
    """Refresh a data source.

    The answer is the queued run; while one is open, it is that one. A run that would remove more
    rows than `removalGuardPercent` fails and changes nothing, unless `force` is set.
    """
    data_source_id = request.ids["dataSourceId"]
    run = await acceptance.accept_refresh(
        request.work, request.actor, data_source_id, request.new_id, force=body.force
    )
    return Data(run)


@router.get(RUNS, access=READ, calls=run_queries.list_runs)
async def list_data_source_runs() -> None:
    """List the runs of a data source, newest first."""


@router.get(RUN, access=READ, calls=run_queries.get_run)
async def get_data_source_run() -> None:
    """Get a run of a data source."""


@router.get(f"{RUN}/rejects", access=replace(READ, cookie=True), media_type=CSV)
async def list_data_source_run_rejects(
    request: ApiRequest,
    format_: FileFormat = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Data[shapes.RejectList]:
    """List the values that a run left blank, and the rows that it skipped, with the reasons.

    They are kept until the next run of the data source has succeeded. With `format=csv`, or
    `Accept: text/csv`, the answer is a file with all that is kept; text that a spreadsheet would
    read as a formula is led by an apostrophe.
    """
    workspace_id, data_source_id = request.actor.workspace_id, request.ids["dataSourceId"]
    run = await run_queries.get_run(
        request.work, workspace_id, data_source_id, request.ids["runId"]
    )
    if wants_csv(request, format_):
        return cast("Data[shapes.RejectList]", await rejects_file(request, run.id))
    page = request.page("rejects", limit, cursor, run.id)
    return Data(await run_queries.list_rejects(request.work, workspace_id, run.id, page))


def wants_csv(request: ApiRequest, file_format: shapes.RejectFormat | None) -> bool:
    """True when rejects are asked for as CSV, by the query or else by `Accept`."""
    if file_format is not None:
        return file_format is shapes.RejectFormat.CSV
    return prefers(CSV, request.headers_named(b"accept"))


async def rejects_file(request: ApiRequest, run_id: Id) -> Response:
    """All that is kept of what a run left out, which the caller may see, as a file."""
    content = await run_queries.rejects_as_csv(request.work, request.actor.workspace_id, run_id)
    headers = {
        "Content-Disposition": f'attachment; filename="rejects-{run_id}.csv"',
        "Content-Type": f"{CSV}; charset=utf-8",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, headers=headers)


@router.post(f"{RUN}/cancel", access=BY_PAGE, calls=acceptance.cancel_run)
async def cancel_data_source_run() -> None:
    """Cancel a run of a data source, which then writes nothing; a finished one does not change."""


@router.post(f"{RUN}/retry", access=WRITE, errors=[ConflictError], calls=acceptance.retry_run)
async def retry_data_source_run() -> None:
    """Retry a failed or cancelled run of a data source, as that is configured now.

    The answer is the queued run, which names the earlier one in `retryOfRunId` and removes as many
    rows as that one was allowed to. While a run of the data source is open none is retried.
    """


@router.post(f"{RUN}/revert", access=BY_PAGE, errors=[ConflictError, InProgressError])
async def revert_data_source_run(request: ApiRequest) -> Data[shapes.DataSourceRunDetail]:
    """Revert the newest run of a data source, for seven days.

    Records that were changed since are kept and counted.
    """
    actor, job_id = request.actor, request.new_id
    data_source_id, run_id = request.ids["dataSourceId"], request.ids["runId"]
    await accept_reversal(request.work, actor, run_id, data_source_id, job_id)

    async def poll(work: UnitOfWork, last: bool) -> shapes.DataSourceRunDetail | None:
        if not await run_queries.reversal_ended(work, actor, run_id, job_id, last=last):
            return None
        return await run_queries.get_run(work, actor.workspace_id, data_source_id, run_id)

    return request.deferred(poll, within=WAIT_SECONDS)


pages_router = Router(tags=["run pages"])

RUN_PAGE = "/v1/data-source-runs/{dataSourceRunId}"

READ_PAGE = Access(
    scopes=[Scope.DATA_SOURCES_READ],
    resource="data_source_run",
    level=Level.VIEW,
    snapshot=True,
    cookie=True,
)


@pages_router.get(RUN_PAGE, access=READ_PAGE)
async def get_source_run(request: ApiRequest) -> Data[shapes.SourceRunOverview]:
    """Get a run of a data source, or an import, by its id alone.

    An import is its maker's, and that of owners and administrators.
    """
    found = await overviews.overview(request.work, request.actor, request.ids["dataSourceRunId"])
    workflow_id = workflow_kind_of(found.data_source_id).workflow_id(found.id)
    found.metadata["temporal"] = temporal_link(request.services.settings, workflow_id)
    return Data(found)


@pages_router.get(f"{RUN_PAGE}/events", access=READ_PAGE, media_type="text/event-stream")
async def watch_source_run(request: ApiRequest) -> Response:
    """Watch a run of a data source, or an import: server-sent events until it ends.

    `state` holds what has changed; `end` says that the run has ended. A stream that stops without
    `end` is to be opened again.
    """
    watch = SourceRunWatch(request.actor.workspace_id, request.ids["dataSourceRunId"])
    events = run_events(request.services, watch)
    return EventStream(request.services.streams, request.share, with_keepalive(events))

"""Runs of data sources: refresh, list, read, cancel, retry, revert."""

from dataclasses import replace
from typing import Annotated, cast

from pydantic import WithJsonSchema
from starlette.responses import Response

from api.kernel.media_types import prefers
from api.kernel.routing import ApiRequest, Cursor, Data, Limit, Router
from api.routers.sources.data_sources import DATA_SOURCE, READ, WRITE
from models.core.base import Id
from models.sources.data_source_runs import queries, rejects
from models.sources.data_source_runs.commands import acceptance
from models.sources.data_source_runs.commands.reversal import accept_reversal
from models.sources.data_source_runs.shapes import (
    DataSourceRunDetail,
    RefreshDataSource,
    RejectFormat,
    RejectList,
)
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError

router = Router(tags=["data sources"])

BY_PAGE = replace(WRITE, cookie=True)
"""The demands of what the page of a run does."""

CSV = "text/csv"
FileFormat = Annotated[
    RejectFormat | None,
    WithJsonSchema({"type": "string", "enum": [one.value for one in RejectFormat]}),
]
WAIT_SECONDS = 25
RUNS = f"{DATA_SOURCE}/runs"
RUN = f"{RUNS}/{{runId}}"


@router.post(f"{DATA_SOURCE}/refresh", access=BY_PAGE)
async def refresh_data_source(
    request: ApiRequest, body: RefreshDataSource
) -> Data[DataSourceRunDetail]:
    """Refresh a data source.

    The answer is the queued run; while one is open, it is that one. A run that would remove more
    rows than `removalGuardPercent` fails and changes nothing, unless `force` is set.
    """
    data_source_id = request.ids["dataSourceId"]
    run = await acceptance.accept_refresh(
        request.work, request.actor, data_source_id, request.new_id, force=body.force
    )
    return Data(run)


@router.get(RUNS, access=READ)
async def list_data_source_runs(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[list[DataSourceRunDetail]]:
    """List the runs of a data source, newest first."""
    workspace_id, data_source_id = request.actor.workspace_id, request.ids["dataSourceId"]
    page = request.page("data source runs", limit, cursor, data_source_id)
    return request.array(await queries.list_runs(request.work, workspace_id, data_source_id, page))


@router.get(RUN, access=READ)
async def get_data_source_run(request: ApiRequest) -> Data[DataSourceRunDetail]:
    """Get a run of a data source."""
    workspace_id, data_source_id = request.actor.workspace_id, request.ids["dataSourceId"]
    return Data(
        await queries.get_run(request.work, workspace_id, data_source_id, request.ids["runId"])
    )


@router.get(f"{RUN}/rejects", access=replace(READ, cookie=True), media_type=CSV)
async def list_data_source_run_rejects(
    request: ApiRequest,
    format_: FileFormat = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Data[RejectList]:
    """List the values that a run left blank, and the rows that it skipped, with the reasons.

    They are kept until the next run of the data source has succeeded. With `format=csv`, or
    `Accept: text/csv`, the answer is a file with all that is kept; text that a spreadsheet would
    read as a formula is led by an apostrophe.
    """
    workspace_id, data_source_id = request.actor.workspace_id, request.ids["dataSourceId"]
    run = await queries.get_run(request.work, workspace_id, data_source_id, request.ids["runId"])
    if wants_csv(request, format_):
        return cast("Data[RejectList]", await rejects_file(request, run.id))
    page = request.page("rejects", limit, cursor, run.id)
    return Data(await rejects.list_rejects(request.work, workspace_id, run.id, page))


def wants_csv(request: ApiRequest, file_format: RejectFormat | None) -> bool:
    """True when rejects are asked for as CSV, by the query or else by `Accept`."""
    if file_format is not None:
        return file_format is RejectFormat.CSV
    return prefers(CSV, request.headers_named(b"accept"))


async def rejects_file(request: ApiRequest, run_id: Id) -> Response:
    """All that is kept of what a run left out, which the caller may see, as a file."""
    content = await rejects.rejects_as_csv(request.work, request.actor.workspace_id, run_id)
    headers = {
        "Content-Disposition": f'attachment; filename="rejects-{run_id}.csv"',
        "Content-Type": f"{CSV}; charset=utf-8",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, headers=headers)


@router.post(f"{RUN}/cancel", access=BY_PAGE)
async def cancel_data_source_run(request: ApiRequest) -> Data[DataSourceRunDetail]:
    """Cancel a run of a data source, which then writes nothing; a finished one stays as it is."""
    data_source_id, run_id = request.ids["dataSourceId"], request.ids["runId"]
    return Data(await acceptance.cancel_run(request.work, request.actor, data_source_id, run_id))


@router.post(f"{RUN}/retry", access=WRITE, errors=[ConflictError])
async def retry_data_source_run(request: ApiRequest) -> Data[DataSourceRunDetail]:
    """Retry a failed or cancelled run of a data source, as that is configured now.

    The answer is the queued run, which names the earlier one in `retryOfRunId` and removes as many
    rows as that one was allowed to. While a run of the data source is open none is retried.
    """
    actor, data_source_id = request.actor, request.ids["dataSourceId"]
    ids = data_source_id, request.ids["runId"], request.new_id
    return Data(await acceptance.retry_run(request.work, actor, *ids))


@router.post(f"{RUN}/revert", access=BY_PAGE, errors=[ConflictError, InProgressError])
async def revert_data_source_run(request: ApiRequest) -> Data[DataSourceRunDetail]:
    """Revert the newest run of a data source, for seven days.

    Records that were changed since are kept and counted.
    """
    actor, job_id = request.actor, request.new_id
    data_source_id, run_id = request.ids["dataSourceId"], request.ids["runId"]
    await accept_reversal(request.work, actor, run_id, data_source_id, job_id)

    async def poll(work: UnitOfWork, last: bool) -> DataSourceRunDetail | None:
        if not await queries.reversal_ended(work, actor, run_id, job_id, last=last):
            return None
        return await queries.get_run(work, actor.workspace_id, data_source_id, run_id)

    return request.deferred(poll, within=WAIT_SECONDS)

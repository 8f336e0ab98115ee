"""Data sources: create, list, read, change, delete, preview."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfUnchanged, Limit, Router
from models.core.access.rules import Level, Scope
from models.sources.data_source_overviews import queries
from models.sources.data_source_overviews.shapes import DataSourceDetail, DataSourceList
from models.sources.data_sources import commands, previews
from models.sources.data_sources.shapes import (
    CreateDataSource,
    DataSourcePreview,
    PreviewDataSource,
    UpdateDataSource,
)
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
async def create_data_source(request: ApiRequest, body: CreateDataSource) -> Data[DataSourceDetail]:
    """Create a data source.

    Without `targetDatabaseId` a database is made for its rows, which needs databases:write too.
    """
    created = await commands.create_data_source(request.work, request.actor, body)
    return Data(await queries.detail(request.work, created))


@router.get(DATA_SOURCES, access=Access(scopes=[Scope.DATA_SOURCES_READ], level=Level.VIEW))
async def list_data_sources(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[DataSourceList]:
    """List data sources, newest first."""
    page = request.page("data_sources", limit, cursor)
    return Data(await queries.list_data_sources(request.work, request.actor, page))


@router.get(DATA_SOURCE, access=READ)
async def get_data_source(request: ApiRequest) -> Data[DataSourceDetail]:
    """Get a data source."""
    data_source_id = request.ids["dataSourceId"]
    return Data(
        await queries.get_data_source(request.work, request.actor.workspace_id, data_source_id)
    )


@router.patch(DATA_SOURCE, access=WRITE, errors=[ConflictError])
async def update_data_source(
    request: ApiRequest, body: UpdateDataSource, if_match: IfUnchanged = None
) -> Data[DataSourceDetail]:
    """Update a data source; its kind cannot change, and `config` is replaced as a whole.

    With the header `If-Match: <updatedAt>` one that was changed since is left as it is.
    """
    data_source_id = request.ids["dataSourceId"]
    updated = await commands.update_data_source(
        request.work, request.actor, data_source_id, body, if_match
    )
    return Data(await queries.detail(request.work, updated))


@router.delete(DATA_SOURCE, access=WRITE)
async def delete_data_source(request: ApiRequest) -> Data[DataSourceDetail]:
    """Put a data source into the trash with its item, for 30 days; its target stays."""
    data_source_id = request.ids["dataSourceId"]
    deleted = await commands.delete_data_source(request.work, request.actor, data_source_id)
    return Data(await queries.detail(request.work, deleted))


@router.post(
    f"{DATA_SOURCES}/preview",
    access=Access(scopes=[Scope.DATA_SOURCES_WRITE], level=Level.EDIT, heavy=True),
    errors=[InProgressError, UpstreamError],
)
async def preview_data_source(
    request: ApiRequest, body: PreviewDataSource
) -> Data[DataSourcePreview]:
    """Preview a data source: its first rows and the fields that its columns suggest.

    Nothing is stored. A source that cannot be fetched or read is a validation error.
    """
    actor, preview_id = request.actor, request.new_id
    await previews.accept_preview(request.work, actor, preview_id, body)

    async def poll(work: UnitOfWork, last: bool) -> DataSourcePreview | None:
        return await previews.preview_outcome(work, actor, preview_id, last=last)

    async def forget(work: UnitOfWork) -> None:
        await previews.forget_preview(work, actor, preview_id)

    return request.deferred(poll, within=PREVIEW_SECONDS, then=forget)

"""Exports of records."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.core.access.rules import Level, Scope
from models.data.record_exports import queries
from models.data.record_exports.commands import accept_export
from models.data.record_exports.commands import cancel_export as cancel
from models.data.record_exports.shapes import CreateExport, ExportDetail, ExportList
from runtime.database import UnitOfWork

router = Router(tags=["records"])

WAIT_SECONDS = 25

_EXPORTS = "/v1/workspaces/{workspaceId}/exports"
_EXPORT = f"{_EXPORTS}/{{exportId}}"
_READING = Access(scopes=[Scope.RECORDS_READ])


@router.post(
    "/v1/databases/{databaseId}/export",
    access=Access(
        scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW, idempotent=True
    ),
)
async def export_records(request: ApiRequest, body: CreateExport) -> Data[ExportDetail]:
    """Export records as a CSV or XLSX file.

    What takes long is answered as it stands; `GET …/exports/{exportId}` shows how it goes on. CSV
    is RFC 4180 in UTF-8 with a byte order mark, and text whose first visible character is a sign
    that begins a formula is led by an apostrophe, which an import keeps.
    """
    actor, export_id, keys = request.actor, request.new_id, request.services.keys
    await accept_export(request.work, actor, request.ids["databaseId"], export_id, body)

    async def poll(work: UnitOfWork, last: bool) -> ExportDetail | None:
        return await queries.export_outcome(work, actor, export_id, keys, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


@router.get(_EXPORTS, access=_READING)
async def list_exports(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[ExportList]:
    """List exports, newest first: the caller's own, or all for owners and administrators."""
    page = request.page("exports", limit, cursor)
    return Data(await queries.list_exports(request.work, request.actor, page))


@router.get(_EXPORT, access=_READING)
async def get_export(request: ApiRequest) -> Data[ExportDetail]:
    """Get an export: the caller's own, or anybody's for owners and administrators."""
    return await _shown(request)


@router.post(f"{_EXPORT}/cancel", access=_READING)
async def cancel_export(request: ApiRequest) -> Data[ExportDetail]:
    """Cancel an export; a finished one stays as it is.

    One that has begun is `cancelled` as soon as what it has written is removed.
    """
    await cancel(request.work, request.actor, request.ids["exportId"])
    return await _shown(request)


async def _shown(request: ApiRequest) -> Data[ExportDetail]:
    export_id, keys = request.ids["exportId"], request.services.keys
    return Data(await queries.export_detail(request.work, request.actor, export_id, keys))

"""Exports of records."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Level, Scope
from models.data.record_exports.commands import accept_export
from models.data.record_exports.queries import export_detail, export_outcome
from models.data.record_exports.shapes import CreateExport, ExportDetail
from runtime.database import UnitOfWork

router = Router(tags=["records"])

WAIT_SECONDS = 25


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
        return await export_outcome(work, actor, export_id, keys, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


@router.get(
    "/v1/workspaces/{workspaceId}/exports/{exportId}", access=Access(scopes=[Scope.RECORDS_READ])
)
async def get_export(request: ApiRequest) -> Data[ExportDetail]:
    """Get an export: the caller's own, or anybody's for owners and administrators."""
    return Data(
        await export_detail(
            request.work, request.actor, request.ids["exportId"], request.services.keys
        )
    )

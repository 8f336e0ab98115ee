"""Imports of spreadsheets."""

from dataclasses import replace
from typing import cast

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from api.routers.sources.data_sources import CSV, DATA_SOURCES, FileFormat, rejects_file, wants_csv
from models.core.access.rules import Level, Scope
from models.sources.data_source_runs import acceptance, queries, shapes
from models.sources.data_source_runs.imports import accept_import, accept_import_preview
from models.sources.data_source_runs.reversal import accept_reversal
from models.sources.data_sources import commands
from models.sources.data_sources.queries import DataSourcePreview
from runtime import errors
from runtime.database import UnitOfWork

router = Router(tags=["data sources"])

IMPORTS = "/v1/workspaces/{workspaceId}/imports"
IMPORT = f"{IMPORTS}/{{importId}}"

WAIT_SECONDS = 55

# The rows may stand in the body.
BRING_IN = Access(scopes=[Scope.DATABASES_WRITE], level=Level.EDIT, idempotent=True, heavy=True)
PREVIEW = replace(BRING_IN, idempotent=False, safe=True)


@router.post(
    f"{DATA_SOURCES}/import-spreadsheet",
    access=BRING_IN,
    errors=[
        errors.ConflictError,
        errors.ConflictingMutationError,
        errors.DeniedError,
        errors.InProgressError,
        errors.UpstreamError,
    ],
)
async def import_spreadsheet(
    request: ApiRequest, body: shapes.ImportSpreadsheet
) -> Data[shapes.SpreadsheetImportResult]:
    """Import a spreadsheet: CSV, TSV, XLSX, XLS, ODS, JSON or NDJSON, into a database.

    All rows are imported or none. The answer waits for the end; what takes long is answered with
    in_progress, and repeated with the same `clientMutationId` or Idempotency-Key the call gives the
    result.
    """
    actor = request.actor
    import_id = await accept_import(request.work, actor, request.new_id, body)

    async def poll(work: UnitOfWork, last: bool) -> shapes.SpreadsheetImportResult | None:
        return await queries.import_outcome(work, actor, import_id, last=last)

    return request.deferred(poll, within=WAIT_SECONDS, of=import_id)


@router.post(
    IMPORTS,
    access=BRING_IN,
    errors=[
        errors.ConflictError,
        errors.ConflictingMutationError,
        errors.DeniedError,
        errors.InProgressError,
    ],
)
async def start_import(
    request: ApiRequest, body: shapes.ImportSpreadsheet
) -> Data[shapes.SpreadsheetImportDetail]:
    """Start an import without waiting for its end: the answer is its current state.

    Follow it by its id, or by the events of `data-source-runs`.
    """
    import_id = await accept_import(request.work, request.actor, request.new_id, body)
    return Data(await queries.get_import(request.work, request.actor, import_id))


@router.post(
    f"{IMPORTS}/preview",
    access=PREVIEW,
    errors=[errors.InProgressError, errors.UpstreamError],
)
async def preview_import(
    request: ApiRequest, body: shapes.PreviewImport
) -> Data[DataSourcePreview]:
    """Preview an import: its first rows and the fields that its columns suggest.

    Nothing is stored. A source that cannot be fetched or read is a validation error.
    """
    actor, preview_id = request.actor, request.new_id
    await accept_import_preview(request.work, actor, preview_id, body)

    async def poll(work: UnitOfWork, last: bool) -> DataSourcePreview | None:
        return await commands.preview_outcome(work, actor, preview_id, last=last)

    async def forget(work: UnitOfWork) -> None:
        await commands.forget_preview(work, actor, preview_id)

    return request.deferred(poll, within=WAIT_SECONDS, then=forget)


@router.get(IMPORT, access=Access(scopes=[Scope.DATA_SOURCES_READ]), calls=queries.get_import)
async def get_import() -> None:
    """Get an import: the caller's own, or any for owners and administrators."""


@router.get(
    f"{IMPORT}/rejects",
    access=Access(scopes=[Scope.DATA_SOURCES_READ], cookie=True),
    media_type=CSV,
)
async def list_import_rejects(
    request: ApiRequest,
    format_: FileFormat = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Data[shapes.RejectList]:
    """List the values that an import left blank, and the rows that it skipped, with the reasons.

    For who may read the import. With `format=csv`, or `Accept: text/csv`, the answer is a file with
    all that is kept; text that a spreadsheet would read as a formula is led by an apostrophe.
    """
    found = await queries.get_import(request.work, request.actor, request.ids["importId"])
    if wants_csv(request, format_):
        return cast("Data[shapes.RejectList]", await rejects_file(request, found.id))
    page = request.page("rejects", limit, cursor, found.id)
    shown = await queries.list_rejects(request.work, request.actor.workspace_id, found.id, page)
    return Data(shown)


@router.post(
    f"{IMPORT}/cancel",
    access=Access(scopes=[Scope.DATA_SOURCES_WRITE], idempotent=True, cookie=True),
    calls=acceptance.cancel_import,
)
async def cancel_import() -> None:
    """Cancel an import, which then writes nothing; a finished one does not change."""


@router.post(
    f"{IMPORT}/undo",
    access=Access(scopes=[Scope.DATA_SOURCES_WRITE], idempotent=True, cookie=True),
    errors=[errors.ConflictError, errors.DeniedError, errors.InProgressError],
)
async def undo_import(request: ApiRequest) -> Data[shapes.SpreadsheetImportDetail]:
    """Undo an import, for seven days: a database that it created goes to the trash.

    Records that were changed since are kept and counted.
    """
    actor, job_id, import_id = request.actor, request.new_id, request.ids["importId"]
    await queries.get_import(request.work, actor, import_id)
    await accept_reversal(request.work, actor, import_id, None, job_id)

    async def poll(work: UnitOfWork, last: bool) -> shapes.SpreadsheetImportDetail | None:
        if not await queries.reversal_ended(work, actor, import_id, job_id, last=last):
            return None
        return await queries.get_import(work, actor, import_id)

    return request.deferred(poll, within=WAIT_SECONDS)

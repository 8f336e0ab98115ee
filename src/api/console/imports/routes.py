"""Choose a spreadsheet, follow its import, cancel or undo it."""

from starlette.responses import Response

from api.console.forms import paged
from api.console.imports.previews import EXAMPLE
from api.console.rendering import console_page
from api.console.resource_pages import act
from api.console.routing import page_router
from api.kernel.routing import Access, ApiRequest, QueryId
from api.routers.sources import spreadsheet_imports as api
from api.routers.sources.spreadsheet_imports import IMPORT
from models.core.access.rules import Scope
from models.data.databases.store import get_database
from models.data.fields.queries import require_edit
from models.messages.jobs.rules import JobStatus
from models.sources.data_source_runs import queries
from models.sources.data_source_runs.reversal import is_reverting
from models.sources.data_source_runs.rules import OPEN_RUN
from models.sources.tabular.rules.options import MAX_FILE_BYTES, TableFormat

router = page_router()

_IMPORT = IMPORT.removeprefix("/v1")


@router.get(
    "/workspaces/{workspaceId}/import", access=paged(Access(scopes=[Scope.DATABASES_WRITE]))
)
async def get_form(request: ApiRequest, database: QueryId | None = None) -> Response:
    """Choose a file, or paste a table."""
    work, actor = request.work, request.actor
    target = None
    if database is not None:
        await require_edit(work, actor, database, "You don't have permission to add records here.")
        target = await get_database(work, actor, database)
    limit = min(request.services.settings.upload_limit, MAX_FILE_BYTES)
    return await console_page(
        request,
        "import_form.html",
        (api.preview_import, EXAMPLE),
        api.start_import,
        target=target,
        formats=[(one.value, one.value.upper()) for one in TableFormat],
        most=limit,
    )


@router.get(_IMPORT, access=paged(Access(scopes=[Scope.DATA_SOURCES_READ])))
async def get_import(request: ApiRequest) -> Response:
    """Follow an import."""
    import_id = request.ids["importId"]
    detail = await queries.get_import(request.work, request.actor, import_id)
    reverting = await is_reverting(request.work, request.actor, import_id)
    workspace_id = request.actor.workspace_id
    left_out = await queries.rejects_by_column(request.work, workspace_id, import_id)
    path = f"/v1/workspaces/{request.workspace_id}/imports/{import_id}"
    return await console_page(
        request,
        "import.html",
        api.get_import,
        api.list_import_rejects,
        api.cancel_import,
        api.undo_import,
        detail=detail,
        going=detail.status in OPEN_RUN,
        reverting=reverting,
        undoable=detail.status is JobStatus.SUCCEEDED and detail.reverted_at is None,
        left_out=left_out,
        rejects=f"{path}/rejects?format=csv",
    )


act(router, f"{_IMPORT}/cancel", api.cancel_import, message="Import cancelled.", then=_IMPORT)


act(router, f"{_IMPORT}/undo", api.undo_import, message="Undoing the import.", then=_IMPORT)

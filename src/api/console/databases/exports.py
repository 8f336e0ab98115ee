"""Exports of a database: begun, followed, cancelled."""

from starlette.responses import Response

from api.console.forms import Form, body_of, done, paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest
from api.routers.data.databases import DATABASE
from models.core.access.rules import Level, Scope
from models.data.record_exports import commands
from models.data.record_exports.queries import export_detail
from models.data.record_exports.shapes import CreateExport
from models.messages.jobs.rules import OPEN_JOB

router = page_router()


class Export(Form):
    """The format of an export, and the view whose records it has."""

    format: str = "csv"
    view_id: str | None = None


@router.post(
    f"{DATABASE.removeprefix('/v1')}/export",
    access=paged(
        Access(scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW, idempotent=True)
    ),
)
async def begin_export(request: ApiRequest, body: Export) -> Response:
    """Begin an export, and lead to where its file will be."""
    choice = body_of(CreateExport, {"format": body.format, "viewId": body.view_id})
    export_id = request.new_id
    await commands.accept_export(
        request.work, request.actor, request.ids["databaseId"], export_id, choice
    )
    return see_other(f"/workspaces/{request.workspace_id}/exports/{export_id}")


@router.get(
    "/workspaces/{workspaceId}/exports/{exportId}",
    access=paged(Access(scopes=[Scope.RECORDS_READ])),
)
async def get_export(request: ApiRequest) -> Response:
    """Follow an export, and fetch its file."""
    keys, export_id = request.services.keys, request.ids["exportId"]
    export = await export_detail(request.work, request.actor, export_id, keys)
    shell = await shell_of(request)
    path = f"/v1/workspaces/{request.workspace_id}/exports/{export_id}"
    return page(
        request,
        "export.html",
        shell,
        export=export,
        going=export.status in OPEN_JOB,
        call=curl(shell.base, "GET", path),
    )


@router.post(
    "/workspaces/{workspaceId}/exports/{exportId}/cancel",
    access=paged(Access(scopes=[Scope.RECORDS_READ])),
)
async def cancel_export(request: ApiRequest) -> Response:
    """Cancel an export."""
    await commands.cancel_export(request.work, request.actor, request.ids["exportId"])
    path = f"/workspaces/{request.workspace_id}/exports/{request.ids['exportId']}"
    return done(request, "The export is cancelled.", path)

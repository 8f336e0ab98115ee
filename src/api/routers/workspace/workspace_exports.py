"""Exports of whole workspaces."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.core.access.rules import Scope
from models.core.base import Id
from models.workspace.workspace_exports import commands, queries
from models.workspace.workspace_exports.shapes import (
    CreateWorkspaceExport,
    WorkspaceExport,
    WorkspaceExportList,
)

router = Router(tags=["workspaces"])

_PATH = "/v1/workspaces/{workspaceId}/workspace-exports"
_EXPORT = f"{_PATH}/{{workspaceExportId}}"
_ACCESS = Access(scopes=[Scope.WORKSPACE_UPDATE])


@router.post(
    _PATH,
    access=Access(scopes=[Scope.WORKSPACE_UPDATE], idempotent=True),
    status_code=202,
    statuses=[200],
)
async def create_workspace_export(
    request: ApiRequest, body: CreateWorkspaceExport
) -> Data[WorkspaceExport]:
    """Export the workspace as a bundle.

    A bundle has everything but secrets, histories and what is in the trash; it can be brought into
    another workspace. `GET …/workspace-exports/{workspaceExportId}` shows how it goes on. While an
    export of the workspace is open, it is the answer, with 200.
    """
    del body
    export_id = await commands.accept_workspace_export(request.work, request.actor, request.new_id)
    if export_id != request.new_id:
        request.status = 200
    return await _shown(request, export_id)


@router.get(_PATH, access=_ACCESS)
async def list_workspace_exports(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[WorkspaceExportList]:
    """List the exports of the workspace, newest first."""
    page = request.page("workspace-exports", limit, cursor)
    return Data(await queries.list_workspace_exports(request.work, request.actor, page))


@router.get(_EXPORT, access=_ACCESS)
async def get_workspace_export(request: ApiRequest) -> Data[WorkspaceExport]:
    """Get an export of the workspace."""
    return await _shown(request, request.ids["workspaceExportId"])


@router.post(f"{_EXPORT}/cancel", access=_ACCESS)
async def cancel_workspace_export(request: ApiRequest) -> Data[WorkspaceExport]:
    """Cancel an export of the workspace; a finished one stays as it is.

    One that has begun is `cancelled` as soon as what it has written is removed.
    """
    export_id = request.ids["workspaceExportId"]
    await commands.cancel_workspace_export(request.work, request.actor, export_id)
    return await _shown(request, export_id)


async def _shown(request: ApiRequest, export_id: Id) -> Data[WorkspaceExport]:
    keys = request.services.keys
    return Data(await queries.workspace_export(request.work, request.actor, export_id, keys))

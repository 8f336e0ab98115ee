"""Exports of whole workspaces."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Scope
from models.core.base import Id
from models.workspace.workspace_exports.commands import accept_workspace_export
from models.workspace.workspace_exports.queries import workspace_export
from models.workspace.workspace_exports.shapes import CreateWorkspaceExport, WorkspaceExport

router = Router(tags=["workspaces"])

_PATH = "/v1/workspaces/{workspaceId}/workspace-exports"


@router.post(
    _PATH,
    access=Access(scopes=[Scope.WORKSPACE_UPDATE], idempotent=True),
    status_code=202,
)
async def create_workspace_export(
    request: ApiRequest, body: CreateWorkspaceExport
) -> Data[WorkspaceExport]:
    """Export the workspace as a bundle.

    A bundle has everything but secrets, histories and what is in the trash; it can be brought into
    another workspace. `GET …/workspace-exports/{workspaceExportId}` shows how it goes on.
    """
    del body
    await accept_workspace_export(request.work, request.actor, request.new_id)
    return await _shown(request, request.new_id)


@router.get(f"{_PATH}/{{workspaceExportId}}", access=Access(scopes=[Scope.WORKSPACE_UPDATE]))
async def get_workspace_export(request: ApiRequest) -> Data[WorkspaceExport]:
    """Get an export of the workspace."""
    return await _shown(request, request.ids["workspaceExportId"])


async def _shown(request: ApiRequest, export_id: Id) -> Data[WorkspaceExport]:
    keys = request.services.keys
    return Data(await workspace_export(request.work, request.actor, export_id, keys))

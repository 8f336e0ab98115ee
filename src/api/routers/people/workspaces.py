"""Workspaces, and exports of whole ones."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Router, WholeLimit
from models.core.access.rules import Scope
from models.core.base import Id
from models.people import workspaces
from models.people.request_logs import list_audit_log
from models.people.workspaces import (
    WorkspaceEntry,
    WorkspaceList,
)
from models.workspace import workspace_exports
from models.workspace.usage import get_usage
from models.workspace.workspace_exports import (
    CreateWorkspaceExport,
    WorkspaceExport,
)
from runtime.errors import ConflictError

router = Router(tags=["workspaces"])


@router.post(
    "/v1/workspaces",
    access=Access(credential="session", idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=workspaces.create_workspace,
)
async def create_workspace() -> None:
    """Create a workspace and become its owner."""


@router.get("/v1/workspaces", access=Access())
async def list_workspaces(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[WorkspaceList]:
    """List the workspaces of the caller with role and permissions, oldest first."""
    page = request.page("workspaces", limit, cursor)
    roles = request.roles
    return Data(await workspaces.page_of_workspaces(request.work, request.principal, roles, page))


@router.get("/v1/me/workspaces", access=Access())
async def list_my_workspaces(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[WorkspaceList]:
    """List the workspaces of the caller; an alias of `GET /v1/workspaces`."""
    return await list_workspaces(request, limit, cursor)


@router.get("/v1/workspaces/{workspaceId}", access=Access(scopes=[Scope.WORKSPACE_READ]))
async def get_workspace(request: ApiRequest) -> Data[WorkspaceEntry]:
    """Get a workspace."""
    actor = request.actor
    found = await workspaces.get_workspace(
        request.work, actor.principal, actor.workspace_id, actor.role
    )
    return Data(found)


@router.patch(
    "/v1/workspaces/{workspaceId}",
    access=Access(scopes=[Scope.WORKSPACE_UPDATE], idempotent=True),
    errors=[ConflictError],
    calls=workspaces.update_workspace,
)
async def update_workspace() -> None:
    """Change the name, the slug or the icon of a workspace."""


@router.delete(
    "/v1/workspaces/{workspaceId}",
    access=Access(scopes=[Scope.WORKSPACE_DELETE]),
    calls=workspaces.delete_workspace,
)
async def delete_workspace() -> None:
    """Delete a workspace for everyone, and revoke its API keys."""


@router.get(
    "/v1/workspaces/{workspaceId}/audit-log",
    access=Access(scopes=[Scope.WORKSPACE_UPDATE]),
    calls=list_audit_log,
)
async def list_workspace_audit_log() -> None:
    """List changes and refused changes in the workspace, newest first.

    Each entry is a write request to the API. The event log has changes by triggers and schedules.
    Entries are kept as long as request logs, 30 days by default.
    """


@router.get(
    "/v1/workspaces/{workspaceId}/usage",
    access=Access(scopes=[Scope.BILLING_READ]),
    calls=get_usage,
)
async def get_workspace_usage() -> None:
    """Get the plan of a workspace, its contents, and its activity this month."""


@router.patch(
    "/v1/workspaces/{workspaceId}/plan",
    access=Access(scopes=[Scope.BILLING_MANAGE], idempotent=True),
    calls=workspaces.change_plan,
)
async def change_workspace_plan() -> None:
    """Change the plan of a workspace. Plans do not set limits or prices."""


_EXPORTS = "/v1/workspaces/{workspaceId}/workspace-exports"

_EXPORT = f"{_EXPORTS}/{{workspaceExportId}}"

_EXPORTING = Access(scopes=[Scope.WORKSPACE_UPDATE])


@router.post(
    _EXPORTS,
    access=Access(scopes=[Scope.WORKSPACE_UPDATE], idempotent=True),
    status_code=202,
    statuses=[200],
)
async def create_workspace_export(
    request: ApiRequest, body: CreateWorkspaceExport
) -> Data[WorkspaceExport]:
    """Export the workspace as a bundle.

    A bundle has everything except secrets, histories and the trash, and can be imported into
    another workspace. `GET …/workspace-exports/{workspaceExportId}` shows its progress. While an
    export is open, it is returned with status 200.
    """
    del body
    export_id = await workspace_exports.accept_workspace_export(
        request.work, request.actor, request.new_id
    )
    if export_id != request.new_id:
        request.status = 200
    return await _shown(request, export_id)


@router.get(_EXPORTS, access=_EXPORTING, calls=workspace_exports.list_workspace_exports)
async def list_workspace_exports() -> None:
    """List the exports of the workspace, newest first."""


@router.get(_EXPORT, access=_EXPORTING)
async def get_workspace_export(request: ApiRequest) -> Data[WorkspaceExport]:
    """Get an export of the workspace."""
    return await _shown(request, request.ids["workspaceExportId"])


@router.post(f"{_EXPORT}/cancel", access=_EXPORTING)
async def cancel_workspace_export(request: ApiRequest) -> Data[WorkspaceExport]:
    """Cancel an export of the workspace. An export that has ended is not changed.

    Once started, it is `cancelled` when its files are removed.
    """
    export_id = request.ids["workspaceExportId"]
    await workspace_exports.cancel_workspace_export(request.work, request.actor, export_id)
    return await _shown(request, export_id)


async def _shown(request: ApiRequest, export_id: Id) -> Data[WorkspaceExport]:
    keys = request.services.keys
    return Data(
        await workspace_exports.workspace_export(request.work, request.actor, export_id, keys)
    )

"""Workspaces, and exports of whole ones."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WholeLimit
from models.core.access.rules import Scope
from models.core.base import Deleted, Id
from models.people import workspaces
from models.people.request_logs import AuditLog, list_audit_log
from models.people.workspaces import (
    ChangePlan,
    CreateWorkspace,
    PlanBody,
    UpdateWorkspace,
    WorkspaceEntry,
    WorkspaceList,
)
from models.workspace import workspace_exports
from models.workspace.usage import Usage, get_usage
from models.workspace.workspace_exports import (
    CreateWorkspaceExport,
    WorkspaceExport,
    WorkspaceExportList,
)
from runtime.errors import ConflictError

router = Router(tags=["workspaces"])


@router.post(
    "/v1/workspaces",
    access=Access(credential="session", idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_workspace(request: ApiRequest, body: CreateWorkspace) -> Data[WorkspaceEntry]:
    """Create a workspace and become its owner."""
    return Data(await workspaces.create_workspace(request.work, request.principal, body))


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
)
async def update_workspace(request: ApiRequest, body: UpdateWorkspace) -> Data[WorkspaceEntry]:
    """Change the name, the slug or the icon of a workspace."""
    return Data(await workspaces.update_workspace(request.work, request.actor, body))


@router.delete("/v1/workspaces/{workspaceId}", access=Access(scopes=[Scope.WORKSPACE_DELETE]))
async def delete_workspace(request: ApiRequest) -> Data[Deleted]:
    """Delete a workspace for everyone, and revoke its API keys."""
    return Data(await workspaces.delete_workspace(request.work, request.actor))


@router.get(
    "/v1/workspaces/{workspaceId}/audit-log", access=Access(scopes=[Scope.WORKSPACE_UPDATE])
)
async def list_workspace_audit_log(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[AuditLog]:
    """List changes and refused changes in the workspace, newest first.

    Each entry is a write request to the API. The event log has changes by triggers and schedules.
    Entries are kept as long as request logs, 30 days by default.
    """
    page = request.page("audit log", limit, cursor)
    return Data(await list_audit_log(request.work, request.actor, page))


@router.get("/v1/workspaces/{workspaceId}/usage", access=Access(scopes=[Scope.BILLING_READ]))
async def get_workspace_usage(request: ApiRequest) -> Data[Usage]:
    """Get the plan of a workspace, its contents, and its activity this month."""
    return Data(await get_usage(request.work, request.actor))


@router.patch(
    "/v1/workspaces/{workspaceId}/plan",
    access=Access(scopes=[Scope.BILLING_MANAGE], idempotent=True),
)
async def change_workspace_plan(request: ApiRequest, body: ChangePlan) -> Data[PlanBody]:
    """Change the plan of a workspace. Plans do not set limits or prices."""
    return Data(await workspaces.change_plan(request.work, request.actor, body))


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


@router.get(_EXPORTS, access=_EXPORTING)
async def list_workspace_exports(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[WorkspaceExportList]:
    """List the exports of the workspace, newest first."""
    page = request.page("workspace-exports", limit, cursor)
    return Data(await workspace_exports.list_workspace_exports(request.work, request.actor, page))


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

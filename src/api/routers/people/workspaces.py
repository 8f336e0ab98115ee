"""Workspaces."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WholeLimit
from models.core.access.rules import Scope
from models.people.request_logs.queries import list_audit_log
from models.people.request_logs.shapes import AuditLog
from models.people.workspaces import commands, queries
from models.people.workspaces.shapes import (
    ChangePlan,
    CreateWorkspace,
    DeletedWorkspace,
    PlanBody,
    UpdateWorkspace,
    WorkspaceEntry,
    WorkspaceList,
)
from models.workspace.usage.queries import get_usage
from models.workspace.usage.shapes import Usage
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
    return Data(await commands.create_workspace(request.work, request.principal, body))


@router.get("/v1/workspaces", access=Access())
async def list_workspaces(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[WorkspaceList]:
    """List the caller's workspaces with role and permissions, oldest first; a key sees its own."""
    page = request.page("workspaces", limit, cursor)
    roles = request.roles
    return Data(await queries.page_of_workspaces(request.work, request.principal, roles, page))


@router.get("/v1/me/workspaces", access=Access())
async def list_my_workspaces(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[WorkspaceList]:
    """List the caller's workspaces; another name of `GET /v1/workspaces`."""
    return await list_workspaces(request, limit, cursor)


@router.get("/v1/workspaces/{workspaceId}", access=Access(scopes=[Scope.WORKSPACE_READ]))
async def get_workspace(request: ApiRequest) -> Data[WorkspaceEntry]:
    """Get a workspace."""
    actor = request.actor
    found = await queries.get_workspace(
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
    return Data(await commands.update_workspace(request.work, request.actor, body))


@router.delete("/v1/workspaces/{workspaceId}", access=Access(scopes=[Scope.WORKSPACE_DELETE]))
async def delete_workspace(request: ApiRequest) -> Data[DeletedWorkspace]:
    """Delete a workspace: it is gone for everybody at once, and its keys stop."""
    return Data(await commands.delete_workspace(request.work, request.actor))


@router.get(
    "/v1/workspaces/{workspaceId}/audit-log", access=Access(scopes=[Scope.WORKSPACE_UPDATE])
)
async def list_workspace_audit_log(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[AuditLog]:
    """List who changed something in the workspace, or was refused to, newest first.

    Each entry is a call of the API that is no read. What triggers and schedules did is in the log
    of events. Entries are kept as long as the log of requests is: for 30 days by default.
    """
    page = request.page("audit log", limit, cursor)
    return Data(await list_audit_log(request.work, request.actor, page))


@router.get("/v1/workspaces/{workspaceId}/usage", access=Access(scopes=[Scope.BILLING_READ]))
async def get_workspace_usage(request: ApiRequest) -> Data[Usage]:
    """Get the plan of a workspace, what it holds, and what it did this month."""
    return Data(await get_usage(request.work, request.actor))


@router.patch(
    "/v1/workspaces/{workspaceId}/plan",
    access=Access(scopes=[Scope.BILLING_MANAGE], idempotent=True),
)
async def change_workspace_plan(request: ApiRequest, body: ChangePlan) -> Data[PlanBody]:
    """Put a workspace on another plan. Nothing is paid by it, and nothing limited."""
    return Data(await commands.change_plan(request.work, request.actor, body))

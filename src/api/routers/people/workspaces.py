"""Workspaces."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Scope
from models.people.workspaces import commands, queries
from models.people.workspaces.shapes import (
    CreateWorkspace,
    DeletedWorkspace,
    UpdateWorkspace,
    WorkspaceEntry,
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
    return Data(await commands.create_workspace(request.work, request.principal, body))


@router.get("/v1/workspaces", access=Access())
async def list_workspaces(request: ApiRequest) -> Data[list[WorkspaceEntry]]:
    """List the caller's workspaces with role and permissions; a key sees its own."""
    return Data(await queries.list_workspaces(request.work, request.principal, request.roles))


@router.get("/v1/me/workspaces", access=Access())
async def list_my_workspaces(request: ApiRequest) -> Data[list[WorkspaceEntry]]:
    """List the caller's workspaces; another name of `GET /v1/workspaces`."""
    return Data(await queries.list_workspaces(request.work, request.principal, request.roles))


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

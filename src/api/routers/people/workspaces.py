"""Operations on workspaces, and on what the caller has: user, notices, choices, home layouts."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Router, WholeLimit
from models.core.access.rules import Scope
from models.core.base import Id
from models.people import home_layouts, oauth_clients, release_notices, users, workspaces
from models.people.oauth_clients import ChooseWorkspace, OauthClientId, OauthClientWorkspace
from models.people.request_logs import list_audit_log
from models.workspace import workspace_exports
from models.workspace.usage import get_usage
from runtime.errors import ConflictError, DeniedError, NotFoundError

me_router = Router(tags=["me"])


@me_router.get("/v1/me", access=Access(), calls=users.get_me)
async def get_me() -> None:
    """Get the user of the credential."""


@me_router.get("/v1/me/scopes", access=Access())
async def get_my_scopes(request: ApiRequest) -> Data[users.MyScopes]:
    """Get the scopes of the credential by workspace."""
    return Data(users.my_scopes(request.principal, request.roles))


release_notices_router = Router(tags=["release notices"])

NOTICES = "/v1/admin/release-notices"


@release_notices_router.get("/v1/me/whats-new/state/{channel}", access=Access())
async def get_whats_new(request: ApiRequest) -> Data[release_notices.WhatsNew]:
    """Get the unread release notices of a channel, `web` or `mobile`.

    The newest 100 notices published since the last acknowledged one are included, newest first.
    Without an acknowledged one, those since the account was created.
    """
    channel = release_notices.read_channel(request.path_params["channel"])
    return Data(await release_notices.whats_new(request.work, request.principal, channel))


@release_notices_router.post(
    "/v1/me/whats-new/ack",
    access=Access(),
    errors=[NotFoundError],
    calls=release_notices.acknowledge,
)
async def acknowledge_whats_new() -> None:
    """Acknowledge the release notices of a channel up to one of them.

    Acknowledging an older notice changes nothing.
    """


@release_notices_router.post(
    NOTICES,
    access=Access(platform_admin=True, idempotent=True),
    status_code=201,
    calls=release_notices.publish_release,
)
async def publish_release_notice() -> None:
    """Publish a release notice to all users of a channel."""


@release_notices_router.get(
    NOTICES, access=Access(platform_admin=True), calls=release_notices.list_releases
)
async def list_release_notices() -> None:
    """List release notices, newest first."""


oauth_clients_router = Router(tags=["me"])

CHOICES = "/v1/me/oauth-client-workspace-preferences"


@oauth_clients_router.put(
    CHOICES, access=Access(idempotent=True), errors=[ConflictError, DeniedError]
)
async def choose_oauth_client_workspace(
    request: ApiRequest, body: ChooseWorkspace
) -> Data[OauthClientWorkspace]:
    """Set the workspace of an OAuth client, replacing the previous one.

    Denied if the caller is not a member. An API key sets its own workspace.
    """
    return Data(
        await oauth_clients.choose_workspace(request.work, request.principal, request.roles, body)
    )


@oauth_clients_router.get(CHOICES, access=Access())
async def get_oauth_client_workspace(
    request: ApiRequest, oauth_client_id: OauthClientId
) -> Data[OauthClientWorkspace]:
    """Get the workspace that the caller last set for an OAuth client, or null."""
    return Data(
        await oauth_clients.read_choice(
            request.work, request.principal, request.roles, oauth_client_id
        )
    )


@oauth_clients_router.get(f"{CHOICES}/{{oauthClient}}", access=Access())
async def get_oauth_client_workspace_by_path(request: ApiRequest) -> Data[OauthClientWorkspace]:
    """Get the workspace of an OAuth client; an alias."""
    name = request.path_params["oauthClient"]
    return Data(
        await oauth_clients.read_choice(request.work, request.principal, request.roles, name)
    )


home_layouts_router = Router(tags=["preferences"])

HOME_LAYOUT = "/v1/workspaces/{workspaceId}/preferences/home-layout"

OWN = Access(scopes=[Scope.WORKSPACE_READ])


@home_layouts_router.get(HOME_LAYOUT, access=OWN, calls=home_layouts.get_home_layout)
async def get_home_layout() -> None:
    """Get the caller's home layout of a workspace."""


@home_layouts_router.put(HOME_LAYOUT, access=OWN, calls=home_layouts.replace_home_layout)
async def replace_home_layout() -> None:
    """Replace the home layout of the caller in a workspace.

    Repeating the call changes nothing.
    """


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
) -> Data[workspaces.WorkspaceList]:
    """List the workspaces of the caller with role and permissions, oldest first."""
    page = request.page("workspaces", limit, cursor)
    roles = request.roles
    return Data(await workspaces.page_of_workspaces(request.work, request.principal, roles, page))


@router.get("/v1/me/workspaces", access=Access())
async def list_my_workspaces(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[workspaces.WorkspaceList]:
    """List the workspaces of the caller; an alias of `GET /v1/workspaces`."""
    return await list_workspaces(request, limit, cursor)


@router.get("/v1/workspaces/{workspaceId}", access=Access(scopes=[Scope.WORKSPACE_READ]))
async def get_workspace(request: ApiRequest) -> Data[workspaces.WorkspaceEntry]:
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
    request: ApiRequest, body: workspace_exports.CreateWorkspaceExport
) -> Data[workspace_exports.WorkspaceExport]:
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
async def get_workspace_export(request: ApiRequest) -> Data[workspace_exports.WorkspaceExport]:
    """Get an export of the workspace."""
    return await _shown(request, request.ids["workspaceExportId"])


@router.post(f"{_EXPORT}/cancel", access=_EXPORTING)
async def cancel_workspace_export(request: ApiRequest) -> Data[workspace_exports.WorkspaceExport]:
    """Cancel an export of the workspace. An export that has ended is not changed.

    Once started, it is `cancelled` when its files are removed.
    """
    export_id = request.ids["workspaceExportId"]
    await workspace_exports.cancel_workspace_export(request.work, request.actor, export_id)
    return await _shown(request, export_id)


async def _shown(request: ApiRequest, export_id: Id) -> Data[workspace_exports.WorkspaceExport]:
    keys = request.services.keys
    return Data(
        await workspace_exports.workspace_export(request.work, request.actor, export_id, keys)
    )

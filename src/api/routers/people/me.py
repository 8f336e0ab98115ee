"""The caller: release notices read, workspaces chosen for OAuth clients, the first page."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Scope
from models.people import home_layouts, oauth_clients, release_notices, users
from models.people.oauth_clients import ChooseWorkspace, OauthClientId, OauthClientWorkspace
from models.people.release_notices import (
    WhatsNew,
)
from models.people.users import MyScopes
from runtime.errors import ConflictError, DeniedError, NotFoundError

router = Router(tags=["me"])


@router.get("/v1/me", access=Access(), calls=users.get_me)
async def get_me() -> None:
    """Get the user of the credential."""


@router.get("/v1/me/scopes", access=Access())
async def get_my_scopes(request: ApiRequest) -> Data[MyScopes]:
    """Get the scopes of the credential by workspace."""
    return Data(users.my_scopes(request.principal, request.roles))


release_notices_router = Router(tags=["release notices"])

NOTICES = "/v1/admin/release-notices"


@release_notices_router.get("/v1/me/whats-new/state/{channel}", access=Access())
async def get_whats_new(request: ApiRequest) -> Data[WhatsNew]:
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

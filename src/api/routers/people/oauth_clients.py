"""The workspace the caller chose for an OAuth client."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.people.oauth_clients import commands
from models.people.oauth_clients.shapes import (
    ChooseWorkspace,
    OauthClientId,
    OauthClientWorkspace,
)
from runtime.errors import ConflictError, DeniedError

router = Router(tags=["me"])

CHOICES = "/v1/me/oauth-client-workspace-preferences"


@router.put(CHOICES, access=Access(idempotent=True), errors=[ConflictError, DeniedError])
async def choose_oauth_client_workspace(
    request: ApiRequest, body: ChooseWorkspace
) -> Data[OauthClientWorkspace]:
    """Choose the workspace of an OAuth client, in place of the one before.

    Denied where the caller is not a member; a key chooses its own workspace.
    """
    return Data(
        await commands.choose_workspace(request.work, request.principal, request.roles, body)
    )


@router.get(CHOICES, access=Access())
async def get_oauth_client_workspace(
    request: ApiRequest, oauth_client_id: OauthClientId
) -> Data[OauthClientWorkspace]:
    """Get the workspace that the caller last chose for an OAuth client; null without a choice."""
    return Data(
        await commands.read_choice(request.work, request.principal, request.roles, oauth_client_id)
    )


@router.get(f"{CHOICES}/{{oauthClient}}", access=Access())
async def get_oauth_client_workspace_by_path(request: ApiRequest) -> Data[OauthClientWorkspace]:
    """Get the caller's choice for an OAuth client; another way to name the client."""
    name = request.path_params["oauthClient"]
    return Data(await commands.read_choice(request.work, request.principal, request.roles, name))

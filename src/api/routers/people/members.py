"""Members and invitations of a workspace, access to single items, and API keys."""

from api.kernel.routing import Access, Router, WholeLimit
from models.content import grants
from models.content.grants import item_access
from models.core.access.rules import Level, Scope
from models.people import api_keys, invitations, members
from models.people.invitations import list_invitations as invitations_to
from models.people.request_logs import page_of_requests
from runtime.errors import ConflictError

router = Router(tags=["members"])

WORKSPACE = "/v1/workspaces/{workspaceId}"
MEMBER = f"{WORKSPACE}/members/{{userId}}"
INVITATIONS = f"{WORKSPACE}/invitations"
ITEM_ACCESS = "/v1/items/{itemId}/access"


@router.get(
    f"{WORKSPACE}/members",
    access=Access(scopes=[Scope.MEMBERS_READ], cookie=True),
    calls=members.list_members,
)
async def list_members() -> None:
    """List the members of a workspace, longest-standing first."""


@router.patch(
    MEMBER,
    access=Access(scopes=[Scope.MEMBERS_MANAGE], resource="user", idempotent=True),
    errors=[ConflictError],
    calls=members.update_member,
)
async def update_member() -> None:
    """Change the role of a member. You cannot give or change roles above your own."""


@router.delete(
    MEMBER,
    access=Access(scopes=[Scope.WORKSPACE_READ], resource="user", idempotent=True),
    errors=[ConflictError],
    calls=members.remove_member,
)
async def remove_member() -> None:
    """Remove a member (needs members:manage), or leave the workspace.

    The grants and API keys of the member are revoked.
    """


@router.get(INVITATIONS, access=Access(scopes=[Scope.MEMBERS_READ]), calls=invitations_to)
async def list_invitations() -> None:
    """List invitations, newest first, without their tokens."""


@router.post(
    INVITATIONS,
    access=Access(scopes=[Scope.MEMBERS_INVITE], idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=invitations.create_invitation,
)
async def create_invitation() -> None:
    """Invite a person by email. The token is only returned once.

    It expires after seven days and replaces an open invitation of the same person.
    """


@router.delete(
    f"{INVITATIONS}/{{invitationId}}",
    access=Access(scopes=[Scope.MEMBERS_INVITE], resource="invitation", idempotent=True),
    calls=invitations.revoke_invitation,
)
async def revoke_invitation() -> None:
    """Revoke an open invitation; a closed one is returned unchanged."""


@router.post(
    "/v1/invitations/{token}/accept",
    access=Access(credential="session", idempotent=True),
    calls=invitations.accept_invitation,
)
async def accept_invitation() -> None:
    """Accept an invitation to the email of the caller."""


@router.get(
    ITEM_ACCESS,
    access=Access(scopes=[Scope.RESOURCES_READ], resource="item", level=Level.MANAGE),
    calls=item_access,
)
async def get_item_access() -> None:
    """Get the access mode and the grants of an item."""


@router.put(
    ITEM_ACCESS,
    access=Access(
        scopes=[Scope.RESOURCES_WRITE], resource="item", level=Level.MANAGE, idempotent=True
    ),
    calls=grants.replace_access,
)
async def replace_item_access() -> None:
    """Replace the access mode and grants of an item.

    `open` inherits from the parent item, `restricted` needs a grant here or above, up to the
    nearest restricted item. Owners and administrators can always manage items.
    """


api_keys_router = Router(tags=["api keys"])


@api_keys_router.get(
    "/v1/workspaces/{workspaceId}/api-keys",
    access=Access(scopes=[Scope.API_KEYS_READ]),
    calls=api_keys.page_of_keys,
)
async def list_api_keys(limit: WholeLimit = 1000) -> None:
    """List API keys, newest first, without their secrets."""


@api_keys_router.post(
    "/v1/workspaces/{workspaceId}/api-keys",
    access=Access(scopes=[Scope.API_KEYS_WRITE], idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=api_keys.create_key,
)
async def create_api_key() -> None:
    """Create an API key. Its secret is only returned once."""


@api_keys_router.get(
    "/v1/workspaces/{workspaceId}/api-keys/request-logs",
    access=Access(scopes=[Scope.API_KEYS_READ]),
    calls=page_of_requests,
)
async def list_request_logs() -> None:
    """List the API requests of the workspace, newest first."""


@api_keys_router.delete(
    "/v1/workspaces/{workspaceId}/api-keys/{apiKeyId}",
    access=Access(scopes=[Scope.API_KEYS_WRITE], resource="api_key", idempotent=True),
    calls=api_keys.revoke_key,
)
async def revoke_api_key() -> None:
    """Revoke an API key immediately."""

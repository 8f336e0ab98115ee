"""Members and invitations of a workspace, access to single items, and API keys."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WholeLimit
from models.content import grants
from models.content.grants import ItemAccess, ReplaceAccess, item_access
from models.core.access.rules import Level, Scope
from models.people import api_keys, invitations, members
from models.people.api_keys import ApiKeyBody, CreateApiKey, IssuedApiKey, RevokedApiKey
from models.people.invitations import (
    CreateInvitation,
    InvitationBody,
    InvitationList,
    IssuedInvitation,
)
from models.people.invitations import list_invitations as invitations_to
from models.people.members import MemberBody, MemberList, RemovedMember, UpdateMember
from models.people.request_logs import RequestLogBody, page_of_requests
from models.people.workspaces import WorkspaceEntry
from runtime.errors import ConflictError

router = Router(tags=["members"])

WORKSPACE = "/v1/workspaces/{workspaceId}"
MEMBER = f"{WORKSPACE}/members/{{userId}}"
INVITATIONS = f"{WORKSPACE}/invitations"
ITEM_ACCESS = "/v1/items/{itemId}/access"


@router.get(f"{WORKSPACE}/members", access=Access(scopes=[Scope.MEMBERS_READ], cookie=True))
async def list_members(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[MemberList]:
    """List the members of a workspace, longest-standing first."""
    page = request.page("members", limit, cursor)
    return Data(await members.list_members(request.work, request.actor, page))


@router.patch(
    MEMBER,
    access=Access(scopes=[Scope.MEMBERS_MANAGE], resource="user", idempotent=True),
    errors=[ConflictError],
)
async def update_member(request: ApiRequest, body: UpdateMember) -> Data[MemberBody]:
    """Change the role of a member. You cannot give or change roles above your own."""
    return Data(
        await members.update_member(request.work, request.actor, request.ids["userId"], body)
    )


@router.delete(
    MEMBER,
    access=Access(scopes=[Scope.WORKSPACE_READ], resource="user", idempotent=True),
    errors=[ConflictError],
)
async def remove_member(request: ApiRequest) -> Data[RemovedMember]:
    """Remove a member (needs members:manage), or leave the workspace.

    The grants and API keys of the member are revoked.
    """
    return Data(await members.remove_member(request.work, request.actor, request.ids["userId"]))


@router.get(INVITATIONS, access=Access(scopes=[Scope.MEMBERS_READ]))
async def list_invitations(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[InvitationList]:
    """List invitations, newest first, without their tokens."""
    page = request.page("invitations", limit, cursor)
    return Data(await invitations_to(request.work, request.actor, page))


@router.post(
    INVITATIONS,
    access=Access(scopes=[Scope.MEMBERS_INVITE], idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_invitation(request: ApiRequest, body: CreateInvitation) -> Data[IssuedInvitation]:
    """Invite a person by email. The token is only returned once.

    It expires after seven days and replaces an open invitation of the same person.
    """
    issued = await invitations.create_invitation(
        request.work, request.actor, request.services.keys, body
    )
    return Data(issued)


@router.delete(
    f"{INVITATIONS}/{{invitationId}}",
    access=Access(scopes=[Scope.MEMBERS_INVITE], resource="invitation", idempotent=True),
)
async def revoke_invitation(request: ApiRequest) -> Data[InvitationBody]:
    """Revoke an open invitation; a closed one is returned unchanged."""
    invitation_id = request.ids["invitationId"]
    return Data(await invitations.revoke_invitation(request.work, request.actor, invitation_id))


@router.post("/v1/invitations/{token}/accept", access=Access(credential="session", idempotent=True))
async def accept_invitation(request: ApiRequest) -> Data[WorkspaceEntry]:
    """Accept an invitation to the email of the caller."""
    token = request.path_params["token"]
    entry = await invitations.accept_invitation(
        request.work, request.principal, request.roles, request.services.keys, token
    )
    return Data(entry)


@router.get(
    ITEM_ACCESS,
    access=Access(scopes=[Scope.RESOURCES_READ], resource="item", level=Level.MANAGE),
)
async def get_item_access(request: ApiRequest) -> Data[ItemAccess]:
    """Get the access mode and the grants of an item."""
    return Data(await item_access(request.work, request.actor, request.ids["itemId"]))


@router.put(
    ITEM_ACCESS,
    access=Access(
        scopes=[Scope.RESOURCES_WRITE], resource="item", level=Level.MANAGE, idempotent=True
    ),
)
async def replace_item_access(request: ApiRequest, body: ReplaceAccess) -> Data[ItemAccess]:
    """Replace the access mode and grants of an item.

    `open` inherits from the parent item, `restricted` needs a grant here or above, up to the
    nearest restricted item. Owners and administrators can always manage items.
    """
    return Data(
        await grants.replace_access(request.work, request.actor, request.ids["itemId"], body)
    )


api_keys_router = Router(tags=["api keys"])


@api_keys_router.get(
    "/v1/workspaces/{workspaceId}/api-keys", access=Access(scopes=[Scope.API_KEYS_READ])
)
async def list_api_keys(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[list[ApiKeyBody]]:
    """List API keys, newest first, without their secrets."""
    page = request.page("api keys", limit, cursor)
    return request.array(await api_keys.page_of_keys(request.work, request.actor, page))


@api_keys_router.post(
    "/v1/workspaces/{workspaceId}/api-keys",
    access=Access(scopes=[Scope.API_KEYS_WRITE], idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_api_key(request: ApiRequest, body: CreateApiKey) -> Data[IssuedApiKey]:
    """Create an API key. Its secret is only returned once."""
    return Data(await api_keys.create_key(request.work, request.actor, request.services.keys, body))


@api_keys_router.get(
    "/v1/workspaces/{workspaceId}/api-keys/request-logs",
    access=Access(scopes=[Scope.API_KEYS_READ]),
)
async def list_request_logs(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[list[RequestLogBody]]:
    """List the API requests of the workspace, newest first."""
    page = request.page("request logs", limit, cursor)
    return request.array(await page_of_requests(request.work, request.actor, page))


@api_keys_router.delete(
    "/v1/workspaces/{workspaceId}/api-keys/{apiKeyId}",
    access=Access(scopes=[Scope.API_KEYS_WRITE], resource="api_key", idempotent=True),
)
async def revoke_api_key(request: ApiRequest) -> Data[RevokedApiKey]:
    """Revoke an API key immediately."""
    return Data(await api_keys.revoke_key(request.work, request.actor, request.ids["apiKeyId"]))

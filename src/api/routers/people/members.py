"""Members and invitations of a workspace, and access to single items."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.content.grants import commands as grants
from models.content.grants.queries import item_access
from models.content.grants.shapes import ItemAccess, ReplaceAccess
from models.core.access.rules import Level, Scope
from models.people.invitations import commands as invitations
from models.people.invitations.queries import list_invitations as invitations_to
from models.people.invitations.shapes import (
    CreateInvitation,
    InvitationBody,
    InvitationList,
    IssuedInvitation,
)
from models.people.members import commands, queries
from models.people.members.shapes import MemberBody, MemberList, RemovedMember, UpdateMember
from models.people.workspaces.shapes import WorkspaceEntry
from runtime.errors import ConflictError

router = Router(tags=["members"])

WORKSPACE = "/v1/workspaces/{workspaceId}"
MEMBER = f"{WORKSPACE}/members/{{userId}}"
INVITATIONS = f"{WORKSPACE}/invitations"
ITEM_ACCESS = "/v1/items/{itemId}/access"


@router.get(f"{WORKSPACE}/members", access=Access(scopes=[Scope.MEMBERS_READ]))
async def list_members(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[MemberList]:
    """List the members of a workspace, longest first."""
    page = request.page("members", limit, cursor)
    return Data(await queries.list_members(request.work, request.actor, page))


@router.patch(
    MEMBER,
    access=Access(scopes=[Scope.MEMBERS_MANAGE], resource="user", idempotent=True),
    errors=[ConflictError],
)
async def update_member(request: ApiRequest, body: UpdateMember) -> Data[MemberBody]:
    """Change the role of a member; nobody gives or takes a role above their own."""
    return Data(
        await commands.update_member(request.work, request.actor, request.ids["userId"], body)
    )


@router.delete(
    MEMBER,
    access=Access(scopes=[Scope.WORKSPACE_READ], resource="user", idempotent=True),
    errors=[ConflictError],
)
async def remove_member(request: ApiRequest) -> Data[RemovedMember]:
    """Remove a member, which needs members:manage, or leave.

    The member's grants go with the membership, and their keys stop.
    """
    return Data(await commands.remove_member(request.work, request.actor, request.ids["userId"]))


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
    """Invite a person by e-mail address; the token is shown in this answer only.

    It holds for seven days and replaces an earlier open invitation of the same person.
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
    """Become a member; the invitation must be to the caller's e-mail address."""
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
    """Replace the access mode and the grants of an item.

    `open` inherits from the item above it, `restricted` needs a grant here or above, up to the
    nearest restricted item; owners and administrators always manage.
    """
    return Data(
        await grants.replace_access(request.work, request.actor, request.ids["itemId"], body)
    )

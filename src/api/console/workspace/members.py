"""Members of a workspace and invitations to it, and the page on which people answer one."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.rendering import console_page, home_of, see_other
from api.console.resource_pages import act, call_operation, force_of
from api.console.routing import page_router
from api.console.workspace import settings
from api.kernel.routing import ApiRequest, Cursor
from api.routers.people import members as api
from models.core.access.rules import Role, Scope
from models.core.pagination import DEFAULT_LIMIT
from models.people import invitations, members
from models.people.invitations import LIFETIME, CreateInvitation, IssuedInvitation
from models.people.members import UpdateMember, outranks

router = page_router()

MEMBERS = f"{settings.SETTINGS}/members"
MEMBER = f"{MEMBERS}/{{userId}}"


@router.get(MEMBERS, access=settings.reads(Scope.MEMBERS_READ))
async def get_members(
    request: ApiRequest, cursor: Cursor = None, notice: settings.Notice | None = None
) -> Response:
    """Look through the members of a workspace."""
    return await _members_page(request, BLANK, cursor, notice)


async def _members_page(
    request: ApiRequest,
    entered: Entered,
    cursor: str | None = None,
    notice: settings.Notice | None = None,
) -> Response:
    wanted = request.page("members", DEFAULT_LIMIT, cursor)
    listed = await members.list_members(request.work, request.actor, wanted)
    return await settings.settings_page(
        request,
        "settings_members.html",
        "members",
        api.list_members,
        (api.update_member, {"role": "editor"}),
        api.remove_member,
        notice=notice,
        entered=entered,
        members=listed.members,
        cursor=cursor,
        next=listed.cursor,
        roles=roles_given_by(request.actor.role),
        own_id=request.actor.user_id,
        outranks=outranks,
        role=request.actor.role,
    )


@router.post(f"{MEMBER}/role", access=settings.changes(Scope.MEMBERS_MANAGE, resource="user"))
@redisplays(_members_page)
async def change_role(request: ApiRequest, body: Fields) -> Response:
    """Change the role of a member."""
    role = read_as(UpdateMember, body.texts)
    await members.update_member(request.work, request.actor, request.ids["userId"], role)
    return settings.led_to(request, "members", notice=settings.Notice.SAVED)


@router.post(f"{MEMBER}/remove", access=settings.changes(Scope.WORKSPACE_READ, resource="user"))
@redisplays(_members_page)
async def remove_member_by_form(request: ApiRequest, body: Fields) -> Response:
    """Remove a member, or leave."""
    user_id = request.ids["userId"]
    await call_operation(api.remove_member, request, **force_of(api.remove_member, body))
    if user_id == request.actor.user_id:
        return see_other("/")
    return settings.led_to(request, "members", notice=settings.Notice.REMOVED)


def roles_given_by(role: Role) -> list[Role]:
    """The roles that a member with this role may give."""
    return [other for other in Role if outranks(role, other)]


INVITATIONS = f"{settings.SETTINGS}/invitations"
ANSWER = "/invitations/{invitationToken}"


@router.get(INVITATIONS, access=settings.reads(Scope.MEMBERS_READ))
async def get_invitations(
    request: ApiRequest, cursor: Cursor = None, notice: settings.Notice | None = None
) -> Response:
    """Look through the invitations to a workspace."""
    return await _invitations_page(request, BLANK, cursor, notice=notice)


async def _invitations_page(
    request: ApiRequest,
    entered: Entered,
    cursor: str | None = None,
    *,
    issued: IssuedInvitation | None = None,
    notice: settings.Notice | None = None,
) -> Response:
    wanted = request.page("invitations", DEFAULT_LIMIT, cursor)
    listed = await invitations.list_invitations(request.work, request.actor, wanted)
    return await settings.settings_page(
        request,
        "settings_invitations.html",
        "invitations",
        api.list_invitations,
        api.create_invitation,
        api.revoke_invitation,
        invitations=listed.invitations,
        cursor=cursor,
        next=listed.cursor,
        roles=roles_given_by(request.actor.role),
        entered=entered,
        issued=issued,
        now=request.work.now,
        days=LIFETIME.days,
        notice=notice,
    )


@router.post(INVITATIONS, access=settings.changes(Scope.MEMBERS_INVITE))
@redisplays(_invitations_page)
async def invite(request: ApiRequest, body: Fields) -> Response:
    """Invite a person, and show the link this once."""
    wanted = read_as(CreateInvitation, {"email": "", **body.texts})
    outcome = await invitations.create_invitation(
        request.work, request.actor, request.services.keys, wanted
    )
    return await _invitations_page(request, BLANK, issued=outcome)


act(
    router,
    f"{INVITATIONS}/{{invitationId}}/revoke",
    api.revoke_invitation,
    notice=settings.Notice.REVOKED,
    then=INVITATIONS,
)


@router.get(ANSWER, access=settings.reads())
async def get_invitation(request: ApiRequest) -> Response:
    """Ask before an invitation is accepted."""
    token = request.path_params["invitationToken"]
    entry = await invitations.invited_to(
        request.work, request.principal, request.services.keys, token
    )
    return await console_page(request, "invitation.html", invited=entry)


@router.post(ANSWER, access=settings.changes())
async def accept_invitation_by_form(request: ApiRequest) -> Response:
    """Become a member of the workspace that invites the caller."""
    token = request.path_params["invitationToken"]
    entry = await invitations.accept_invitation(
        request.work, request.principal, request.roles, request.services.keys, token
    )
    return see_other(home_of(entry.workspace.id))

"""Invitations to a workspace: who was asked, and the page on which they answer."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import home_of, shell_of
from api.console.workspace.members import roles_given_by
from api.console.workspace.settings import (
    SETTINGS,
    Notice,
    changes,
    led_to,
    reads,
    settings_page,
    turning,
)
from api.kernel.routing import ApiRequest, Cursor
from models.core.access.rules import Scope
from models.core.pagination import DEFAULT_LIMIT
from models.people.invitations import commands, queries
from models.people.invitations.rules import LIFETIME
from models.people.invitations.shapes import CreateInvitation, IssuedInvitation
from runtime.errors import PlatformError

router = page_router()

INVITATIONS = f"{SETTINGS}/invitations"
ANSWER = "/invitations/{invitationToken}"


@router.get(INVITATIONS, access=reads(Scope.MEMBERS_READ))
async def get_invitations(
    request: ApiRequest, cursor: Cursor = None, notice: Notice | None = None
) -> Response:
    """Look through the invitations to a workspace."""
    return await _shown(request, cursor, notice=notice)


@router.post(INVITATIONS, access=changes(Scope.MEMBERS_INVITE))
async def invite(request: ApiRequest, body: Fields) -> Response:
    """Invite a person, and show the link this once."""

    async def create() -> IssuedInvitation:
        wanted = read_as(CreateInvitation, {"email": "", **body.texts})
        return await commands.create_invitation(
            request.work, request.actor, request.services.keys, wanted
        )

    outcome = await attempt(request, create)
    if isinstance(outcome, PlatformError):
        return await _shown(request, None, entered=Entered(body.texts, outcome))
    return await _shown(request, None, issued=outcome)


@router.post(
    f"{INVITATIONS}/{{invitationId}}/revoke",
    access=changes(Scope.MEMBERS_INVITE, resource="invitation"),
)
async def revoke_invitation_by_form(request: ApiRequest) -> Response:
    """Revoke an open invitation."""
    await commands.revoke_invitation(request.work, request.actor, request.ids["invitationId"])
    return led_to(request, "invitations", notice=Notice.REVOKED)


@router.get(ANSWER, access=reads())
async def get_invitation(request: ApiRequest) -> Response:
    """Ask before an invitation is accepted."""
    token = request.path_params["invitationToken"]
    entry = await queries.invited_to(request.work, request.principal, request.services.keys, token)
    return page(request, "invitation.html", await shell_of(request), invited=entry)


@router.post(ANSWER, access=changes())
async def accept_invitation_by_form(request: ApiRequest) -> Response:
    """Become a member of the workspace that invites the caller."""
    token = request.path_params["invitationToken"]
    entry = await commands.accept_invitation(
        request.work, request.principal, request.roles, request.services.keys, token
    )
    return see_other(home_of(entry.workspace.id))


async def _shown(
    request: ApiRequest,
    cursor: str | None,
    *,
    entered: Entered = BLANK,
    issued: IssuedInvitation | None = None,
    notice: Notice | None = None,
) -> Response:
    wanted = request.page("invitations", DEFAULT_LIMIT, cursor)
    listed = await queries.list_invitations(request.work, request.actor, wanted)
    return await settings_page(
        request,
        "settings_invitations.html",
        "invitations",
        invitations=listed.invitations,
        turning=turning(request, cursor, listed.cursor),
        roles=roles_given_by(request.actor.role),
        entered=entered,
        issued=issued,
        now=request.work.now,
        days=LIFETIME.days,
        notice=notice,
    )

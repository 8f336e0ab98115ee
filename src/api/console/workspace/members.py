"""Members of a workspace: their roles, and their end here."""

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.rendering import see_other
from api.console.routing import page_router
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
from models.core.access.rules import Role, Scope
from models.core.pagination import DEFAULT_LIMIT
from models.people.members import commands, queries
from models.people.members.rules import outranks
from models.people.members.shapes import MemberBody, UpdateMember
from runtime.errors import PlatformError

router = page_router()

MEMBERS = f"{SETTINGS}/members"
MEMBER = f"{MEMBERS}/{{userId}}"


@router.get(MEMBERS, access=reads(Scope.MEMBERS_READ))
async def get_members(
    request: ApiRequest, cursor: Cursor = None, notice: Notice | None = None
) -> Response:
    """Look through the members of a workspace."""
    return await _shown(request, cursor, notice=notice)


@router.post(f"{MEMBER}/role", access=changes(Scope.MEMBERS_MANAGE, resource="user"))
async def change_role(request: ApiRequest, body: Fields) -> Response:
    """Change the role of a member."""

    async def change() -> MemberBody:
        role = read_as(UpdateMember, body.texts)
        return await commands.update_member(
            request.work, request.actor, request.ids["userId"], role
        )

    outcome = await attempt(request, change)
    if isinstance(outcome, PlatformError):
        return await _shown(request, None, entered=Entered({}, outcome))
    return led_to(request, "members", notice=Notice.SAVED)


@router.post(f"{MEMBER}/remove", access=changes(Scope.WORKSPACE_READ, resource="user"))
async def remove_member_by_form(request: ApiRequest) -> Response:
    """Remove a member, or leave."""
    user_id = request.ids["userId"]
    outcome = await attempt(
        request, lambda: commands.remove_member(request.work, request.actor, user_id)
    )
    if isinstance(outcome, PlatformError):
        return await _shown(request, None, entered=Entered({}, outcome))
    if user_id == request.actor.user_id:
        return see_other("/")
    return led_to(request, "members", notice=Notice.REMOVED)


def roles_given_by(role: Role) -> list[Role]:
    """The roles that a member with this role may give."""
    return [other for other in Role if outranks(role, other)]


async def _shown(
    request: ApiRequest,
    cursor: str | None,
    *,
    entered: Entered = BLANK,
    notice: Notice | None = None,
) -> Response:
    wanted = request.page("members", DEFAULT_LIMIT, cursor)
    listed = await queries.list_members(request.work, request.actor, wanted)
    return await settings_page(
        request,
        "settings_members.html",
        "members",
        notice=notice,
        entered=entered,
        members=listed.members,
        turning=turning(request, cursor, listed.cursor),
        roles=roles_given_by(request.actor.role),
        own_id=request.actor.user_id,
        outranks=outranks,
        role=request.actor.role,
    )

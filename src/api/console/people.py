"""The members of a workspace, for forms in which one is chosen."""

from collections.abc import Collection

from api.kernel.request import ApiRequest
from models.core.access.rules import Scope
from models.core.base import Id
from models.people.members.queries import list_members
from models.people.users.queries import display_name

_MOST = 100


async def member_names(request: ApiRequest, users: Collection[Id] = ()) -> dict[str, str]:
    """The names of members, and of some `users`, by their ids.

    Who may not see the members is shown the users alone.
    """
    names: dict[str, str] = {}
    if Scope.MEMBERS_READ in request.actor.scopes:
        turn = request.page("console members", _MOST, None)
        listed = await list_members(request.work, request.actor, turn)
        names = {str(one.user_id): one.name or one.email or "A member" for one in listed.members}
    for user_id in users:
        if str(user_id) not in names:
            names[str(user_id)] = await display_name(request.work, user_id)
    return names

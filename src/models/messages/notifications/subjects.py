"""The viewers of the item that a notification is about, which the wing of items knows.

It says so through `find_viewers_with`; `models.registrations` lists it.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping

from models.core.access.rules import Role
from models.core.base import Id
from runtime.database import UnitOfWork

FindViewers = Callable[[UnitOfWork, Id, Id, Mapping[Id, Role]], Awaitable[Collection[Id]]]
"""Takes a workspace, an item and members with their roles; gives the members who see the item."""

_FIND: list[FindViewers] = []


def find_viewers_with(find: FindViewers) -> None:
    """Ask `find` who sees an item; registering it again changes nothing."""
    if find not in _FIND:
        _FIND.append(find)


async def viewers_of(
    work: UnitOfWork, workspace_id: Id, item_id: Id | None, roles: Mapping[Id, Role]
) -> Collection[Id]:
    """The members among these who see what a notification is about; without an item all do."""
    if item_id is None or not roles:
        return roles.keys()
    (find,) = _FIND
    return await find(work, workspace_id, item_id, roles)

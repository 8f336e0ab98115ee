"""Viewers of an item."""

from collections.abc import Collection, Mapping

from models.content.items.queries import placement
from models.core.access.placement import level_on
from models.core.access.rules import MANAGERS, Level, Role
from models.core.base import Id
from runtime.database import UnitOfWork


async def viewers_among(
    work: UnitOfWork, workspace_id: Id, item_id: Id, roles: Mapping[Id, Role]
) -> Collection[Id]:
    """The members among these who see an item; managers see it in the trash, too."""
    seeing = {user_id for user_id, role in roles.items() if role in MANAGERS}
    for user_id in sorted(roles.keys() - seeing):
        found = await placement(work, [workspace_id], item_id, user_id)
        if found is not None and level_on(found, roles[user_id]) >= Level.VIEW:
            seeing.add(user_id)
    return seeing

"""The place of a resource in the tree of items, and the level it gives a caller."""

from dataclasses import dataclass

from models.core.access.rules import MANAGERS, ROLE_LEVELS, Level, Role
from models.core.base import Id


@dataclass(frozen=True, slots=True)
class Placement:
    """A resource as one user sees it in a workspace (decisions C4).

    `restricted` says that an item on its way to the root is; then the role gives nothing.
    `granted` is the highest level given to the user on the way, as far as that item.
    """

    workspace_id: Id
    item_id: Id | None = None
    restricted: bool = False
    granted: Level = Level.NONE


def level_on(placement: Placement, role: Role) -> Level:
    """The level of a member with this role there; owners and administrators always manage."""
    if role in MANAGERS:
        return Level.MANAGE
    inherited = Level.NONE if placement.restricted else ROLE_LEVELS[role]
    return max(inherited, placement.granted)

"""Where a resource hangs in the tree of items, which decides what a caller may do with it."""

from dataclasses import dataclass

from models.access.rules import ROLE_LEVELS, Level, Role
from models.base import Id


@dataclass(frozen=True, slots=True)
class Placement:
    """A resource seen in a workspace.

    `level` is what a restricted item grants everyone who is not an owner or administrator; None
    inherits from the role (decisions C4).
    """

    workspace_id: Id
    item_id: Id | None = None
    level: Level | None = None


def level_on(placement: Placement, role: Role) -> Level:
    """What a member with this role may do there; owners and administrators always manage."""
    if role in {Role.OWNER, Role.ADMIN} or placement.level is None:
        return ROLE_LEVELS[role]
    return placement.level

"""The roles that a member may give and change (decisions C4)."""

from models.core.access.rules import Role
from runtime.errors import DeniedError

_RANK = {role: place for place, role in enumerate(Role)}


def outranks(role: Role, other_role: Role) -> bool:
    """True when a role is the other or stronger."""
    return _RANK[role] <= _RANK[other_role]


def check_role_given(giver: Role, role: Role) -> None:
    """Nobody gives a role above their own. Raises `DeniedError`."""
    if not outranks(giver, role):
        raise DeniedError(f"The role {giver} cannot make somebody {role}.")


def check_touched(giver: Role, current: Role) -> None:
    """Nobody changes or removes a member of a higher role. Raises `DeniedError`."""
    if not outranks(giver, current):
        raise DeniedError(f"The role {giver} cannot change what the {current} is.")

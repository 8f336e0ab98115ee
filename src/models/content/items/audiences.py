"""Viewers of items: those among some members, and of all items for all members at once."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import array

from models.content.items.joins import way_to_root
from models.content.items.queries import placed_items, placement
from models.content.items.rules import AccessMode
from models.content.items.tables import item, item_grant
from models.core.access.rules import MANAGERS, ROLE_LEVELS, Level, Role, level_on
from models.core.base import Id
from runtime.database import UnitOfWork, Work
from runtime.postgresql.statements import PreparedStatement


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


_RESTRICTED = AccessMode.RESTRICTED.value


@dataclass(frozen=True, slots=True)
class Audience:
    """The viewers of an item, judged as its `Placement` is: by roles, and by grants that count."""

    restricted: bool
    granted: frozenset[Id]

    def has(self, user_id: Id, role: Role) -> bool:
        """True when this member sees the item."""
        if role in MANAGERS or user_id in self.granted:
            return True
        return not self.restricted and ROLE_LEVELS[role] >= Level.VIEW


class _Row(Protocol):
    item_id: Id
    restricted: bool
    granted: Sequence[Id]


def _judged() -> sa.Select[Any]:
    way = way_to_root(
        placed_items().where(item.c.id == sa.any_(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))))
    )
    granted = sa.func.array_agg(item_grant.c.user_id).filter(
        way.c.restrictions == 0, item_grant.c.user_id.is_not(None)
    )
    return (
        sa.select(
            way.c.item_id,
            sa.func.bool_or(way.c.access_mode == _RESTRICTED).label("restricted"),
            sa.func.coalesce(granted, array([], type_=sa.Uuid)).label("granted"),
        )
        .outerjoin(
            item_grant,
            sa.and_(
                item_grant.c.workspace_id == way.c.workspace_id,
                item_grant.c.item_id == way.c.passed_id,
            ),
        )
        .group_by(way.c.item_id)
    )


_AUDIENCES = PreparedStatement(_judged(), _Row)


async def audiences(
    work: Work, workspace_id: Id, item_ids: Collection[Id]
) -> Mapping[Id, Audience]:
    """The viewers of these items, also of items in the trash; an item that is gone is left out."""
    if not item_ids:
        return {}
    parameters = {"workspace_ids": [workspace_id], "ids": list(item_ids)}
    rows = await _AUDIENCES.rows(work, parameters)
    return {row.item_id: Audience(row.restricted, frozenset(row.granted)) for row in rows}

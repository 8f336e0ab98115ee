"""Where items are, and which of them a caller sees."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, Select, and_, func, or_, select

from models.access.placement import Placement
from models.access.rules import Actor, Level, Role
from models.base import Id
from models.items.rules import AccessMode
from models.items.tables import item
from runtime.database import UnitOfWork

_PARENT = item.alias("parent")
_CHILD = item.alias("child")
_RESTRICTED = AccessMode.RESTRICTED.value


async def placement(work: UnitOfWork, workspace_ids: Sequence[Id], item_id: Id) -> Placement | None:
    """Where an item is, or None when it is in none of these workspaces or in the trash."""
    start = placed_items().where(item.c.id == item_id, item.c.workspace_id.in_(workspace_ids))
    return await placement_from(work, start)


def placed_items() -> Select[Any]:
    """The start of a placement: a caller narrows it to one item, by joins if need be."""
    return select(
        item.c.workspace_id,
        item.c.id.label("item_id"),
        item.c.parent_item_id,
        item.c.access_mode,
        item.c.deleted_at,
    )


async def placement_from(work: UnitOfWork, start: Select[Any]) -> Placement | None:
    """The placement of the one item that `start` selects, judged along its way to the root.

    A restricted item anywhere on the way closes what is below it; so does one in the trash.
    """
    way = start.cte("way", recursive=True)
    # UNION, not UNION ALL: a row met twice ends the walk even if the tree had a cycle.
    way = way.union(
        select(
            _PARENT.c.workspace_id,
            way.c.item_id,
            _PARENT.c.parent_item_id,
            _PARENT.c.access_mode,
            _PARENT.c.deleted_at,
        ).where(_PARENT.c.workspace_id == way.c.workspace_id, _PARENT.c.id == way.c.parent_item_id)
    )
    found = await work.first(
        select(
            way.c.workspace_id,
            way.c.item_id,
            func.bool_or(way.c.access_mode == _RESTRICTED).label("restricted"),
        )
        .group_by(way.c.workspace_id, way.c.item_id)
        .having(func.bool_and(way.c.deleted_at.is_(None)))
    )
    if found is None:
        return None
    level = Level.NONE if found.restricted else None
    return Placement(workspace_id=found.workspace_id, item_id=found.item_id, level=level)


def closed_items(actor: Actor) -> CTE:
    """Ids of the items this member does not see: in the trash, restricted, or below such a one.

    Nobody but owners and administrators sees a restricted item: there are no grants yet.
    """
    sees_all = actor.role in {Role.OWNER, Role.ADMIN}
    deleted, restricted = item.c.deleted_at.is_not(None), item.c.access_mode == _RESTRICTED
    hidden = deleted if sees_all else or_(deleted, restricted)
    closed = (
        select(item.c.id)
        .where(item.c.workspace_id == actor.workspace_id, hidden)
        .cte("closed", recursive=True)
    )
    return closed.union(
        select(_CHILD.c.id).where(
            and_(
                _CHILD.c.workspace_id == actor.workspace_id,
                _CHILD.c.parent_item_id == closed.c.id,
                _CHILD.c.deleted_at.is_(None),
            )
        )
    )

"""Where items are, and which of them a caller sees."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, CTE, Select, Uuid, and_, any_, bindparam, func, or_, select

from models.access.placement import Placement
from models.access.rules import Actor, Level, Role
from models.base import Id
from models.items.rules import AccessMode
from models.items.tables import item
from runtime.database import UnitOfWork
from runtime.prepared import Prepared

_PARENT = item.alias("parent")
_CHILD = item.alias("child")
_RESTRICTED = AccessMode.RESTRICTED.value


def placed_items() -> Select[Any]:
    """The start of a `PlacementOf`: narrowed by its maker, by joins if need be.

    It must take the parameters `id` and `workspace_ids`.
    """
    return select(
        item.c.workspace_id,
        item.c.id.label("item_id"),
        item.c.parent_item_id,
        item.c.access_mode,
        item.c.deleted_at,
    ).where(item.c.workspace_id == any_(bindparam("workspace_ids", type_=ARRAY(Uuid))))


class PlacementOf:
    """Finds the one item that `start` selects, judged along its way to the root.

    A restricted item anywhere on the way closes what is below it; so does one in the trash.
    """

    def __init__(self, start: Select[Any]) -> None:
        self._statement = Prepared(_judged(start))

    async def __call__(
        self, work: UnitOfWork, workspace_ids: Sequence[Id], resource_id: Id
    ) -> Placement | None:
        """The placement, or None when none of these workspaces shows the resource."""
        parameters = {"id": resource_id, "workspace_ids": list(workspace_ids)}
        found = await self._statement.first(work, parameters)
        if found is None:
            return None
        level = Level.NONE if found.restricted else None
        return Placement(workspace_id=found.workspace_id, item_id=found.item_id, level=level)


def _judged(start: Select[Any]) -> Select[Any]:
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
    return (
        select(
            way.c.workspace_id,
            way.c.item_id,
            func.bool_or(way.c.access_mode == _RESTRICTED).label("restricted"),
        )
        .group_by(way.c.workspace_id, way.c.item_id)
        .having(func.bool_and(way.c.deleted_at.is_(None)))
    )


placement = PlacementOf(placed_items().where(item.c.id == bindparam("id", type_=Uuid)))
"""Where an item is: `await placement(work, workspace_ids, item_id)`."""


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

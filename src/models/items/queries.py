"""Where items are, and which of them a caller sees."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    Integer,
    Select,
    Uuid,
    and_,
    any_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
)

from models.access.placement import Placement
from models.access.rules import MANAGERS, Actor, Level
from models.base import Id
from models.grants.tables import item_grant
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
        item.c.id.label("passed_id"),
        item.c.parent_item_id,
        item.c.access_mode,
        item.c.deleted_at,
        literal(0, Integer).label("restrictions"),
    ).where(item.c.workspace_id == any_(bindparam("workspace_ids", type_=ARRAY(Uuid))))


class PlacementOf:
    """Finds the one item that `start` selects, judged along its way to the root.

    The nearest restricted item on the way ends what the role gives and bounds the grants that
    count; an item in the trash hides what is below it.
    """

    def __init__(self, start: Select[Any]) -> None:
        self._statement = Prepared(_judged(start))

    async def __call__(
        self, work: UnitOfWork, workspace_ids: Sequence[Id], resource_id: Id, user_id: Id
    ) -> Placement | None:
        """The placement, or None when none of these workspaces shows the resource."""
        parameters = {
            "id": resource_id,
            "workspace_ids": list(workspace_ids),
            "user_id": user_id,
        }
        found = await self._statement.first(work, parameters)
        if found is None:
            return None
        return Placement(
            workspace_id=found.workspace_id,
            item_id=found.item_id,
            restricted=found.restricted,
            granted=Level(found.granted),
        )


def _judged(start: Select[Any]) -> Select[Any]:
    way = start.cte("way", recursive=True)
    # UNION, not UNION ALL: a row met twice ends the walk even if the tree had a cycle.
    way = way.union(
        select(
            _PARENT.c.workspace_id,
            way.c.item_id,
            _PARENT.c.id,
            _PARENT.c.parent_item_id,
            _PARENT.c.access_mode,
            _PARENT.c.deleted_at,
            case((way.c.access_mode == _RESTRICTED, 1), else_=way.c.restrictions),
        ).where(_PARENT.c.workspace_id == way.c.workspace_id, _PARENT.c.id == way.c.parent_item_id)
    )
    return (
        select(
            way.c.workspace_id,
            way.c.item_id,
            func.bool_or(way.c.access_mode == _RESTRICTED).label("restricted"),
            func.coalesce(
                func.max(item_grant.c.level).filter(way.c.restrictions == 0), Level.NONE.value
            ).label("granted"),
        )
        .outerjoin(
            item_grant,
            and_(
                item_grant.c.workspace_id == way.c.workspace_id,
                item_grant.c.item_id == way.c.passed_id,
                item_grant.c.user_id == bindparam("user_id", type_=Uuid),
            ),
        )
        .group_by(way.c.workspace_id, way.c.item_id)
        .having(func.bool_and(way.c.deleted_at.is_(None)))
    )


placement = PlacementOf(placed_items().where(item.c.id == bindparam("id", type_=Uuid)))
"""Where an item is: `await placement(work, workspace_ids, item_id, user_id)`."""


def closed_items(actor: Actor) -> CTE:
    """Ids of the items this member does not see, of the whole workspace.

    In the trash or below it; for those who are no managers also what is restricted without a
    grant, and for guests everything that no grant opens (decisions C4).
    """
    mine = item.c.workspace_id == actor.workspace_id
    if actor.role in MANAGERS:
        closed = select(item.c.id).where(mine, item.c.deleted_at.is_not(None))
        return _with_descendants(actor, closed.cte("closed", recursive=True))
    return select(item.c.id).where(mine, item.c.id.not_in(_open_items(actor))).cte("closed")


def _with_descendants(actor: Actor, top: CTE) -> CTE:
    return top.union(
        select(_CHILD.c.id).where(
            _CHILD.c.workspace_id == actor.workspace_id, _CHILD.c.parent_item_id == top.c.id
        )
    )


def _open_items(actor: Actor) -> Select[Any]:
    """From the root and from every grant downwards, until a restriction or the trash."""
    granted = select(item_grant.c.item_id).where(
        item_grant.c.workspace_id == actor.workspace_id, item_grant.c.user_id == actor.user_id
    )
    by_role = and_(
        literal(actor.level >= Level.VIEW),
        item.c.parent_item_id.is_(None),
        item.c.access_mode != _RESTRICTED,
    )
    top = (
        select(item.c.id)
        .where(
            item.c.workspace_id == actor.workspace_id,
            item.c.deleted_at.is_(None),
            or_(by_role, item.c.id.in_(granted)),
        )
        .cte("opened", recursive=True)
    )
    opened = top.union(
        select(_CHILD.c.id).where(
            _CHILD.c.workspace_id == actor.workspace_id,
            _CHILD.c.parent_item_id == top.c.id,
            _CHILD.c.access_mode != _RESTRICTED,
            _CHILD.c.deleted_at.is_(None),
        )
    )
    return select(opened.c.id)

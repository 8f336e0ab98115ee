"""The shape of the tree: what is above an item, and what is below it."""

from typing import Any

from sqlalchemy import CTE, ColumnElement, Integer, Select, Uuid, bindparam, case, literal, select

from models.content.items.rules import AccessMode
from models.content.items.tables import item
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement

_PARENT = item.alias("parent")
_CHILD = item.alias("child")


def live(
    workspace_id: Id | ColumnElement[Id], item_id: Id | ColumnElement[Id]
) -> tuple[ColumnElement[bool], ...]:
    """The conditions of one item that is not in the trash."""
    return (
        item.c.workspace_id == workspace_id,
        item.c.id == item_id,
        item.c.deleted_at.is_(None),
    )


_WAY = (
    select(item.c.id, item.c.parent_item_id)
    .where(*live(bindparam("workspace_id", type_=Uuid), bindparam("id", type_=Uuid)))
    .cte("way_up", recursive=True)
)
_WAY_UP = _WAY.union(
    select(_PARENT.c.id, _PARENT.c.parent_item_id).where(
        _PARENT.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        _PARENT.c.id == _WAY.c.parent_item_id,
    )
)
_ABOVE = PreparedStatement(select(_WAY_UP.c.id))


async def way_up(work: UnitOfWork, workspace_id: Id, item_id: Id) -> list[Id]:
    """The ids of an item and of all above it, up to the root; in no order."""
    rows = await _ABOVE.rows(work, {"workspace_id": workspace_id, "id": item_id})
    return [row.id for row in rows]


def way_to_root(start: Select[Any]) -> CTE:
    """The items that `placed_items` selects, with all above them."""
    way = start.cte("way", recursive=True)
    # UNION, not UNION ALL: a row met twice ends the walk even if the tree had a cycle.
    return way.union(
        select(
            _PARENT.c.workspace_id,
            way.c.item_id,
            _PARENT.c.id,
            _PARENT.c.parent_item_id,
            _PARENT.c.access_mode,
            _PARENT.c.deleted_at,
            case((way.c.access_mode == AccessMode.RESTRICTED.value, 1), else_=way.c.restrictions),
        ).where(_PARENT.c.workspace_id == way.c.workspace_id, _PARENT.c.id == way.c.parent_item_id)
    )


def subtree(workspace_id: Id, item_id: Id) -> CTE:
    """An item and what is below it, as far as it is not in the trash: `id` and `depth` from 0."""
    top = (
        select(item.c.id, literal(0, Integer).label("depth"))
        .where(*live(workspace_id, item_id))
        .cte("subtree", recursive=True)
    )
    return top.union_all(
        select(_CHILD.c.id, top.c.depth + 1).where(
            _CHILD.c.workspace_id == workspace_id,
            _CHILD.c.parent_item_id == top.c.id,
            _CHILD.c.deleted_at.is_(None),
        )
    )

"""Listing items: the children of one in their order, or those of the workspace, newest first."""

from typing import Any, Literal

from sqlalchemy import ColumnElement, select, tuple_

from models.content.items.queries import closed_items, item_detail, placement
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemList
from models.content.items.tables import ItemRow, item
from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.core.pagination import PageRequest
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def list_items(
    work: UnitOfWork,
    actor: Actor,
    page: PageRequest,
    *,
    kind: ItemKind | None = None,
    parent_id: Id | Literal["root"] | None = None,
    archived: bool = False,
) -> ItemList:
    """The items the actor sees: children in their order, all of the workspace newest first.

    Raises `NotFoundError` for a parent the actor does not see.
    """
    statement = select(item).where(
        item.c.workspace_id == actor.workspace_id,
        item.c.deleted_at.is_(None),
        item.c.archived.is_(archived),
        item.c.id.not_in(select(closed_items(actor).c.id)),
    )
    if kind is not None:
        statement = statement.where(item.c.kind == kind.value)
    if parent_id is None:
        statement, place = statement.order_by(item.c.id.desc()), _newest
        if page.after is not None:
            statement = statement.where(item.c.id < page.after[0])
    else:
        statement, place = statement.order_by(item.c.position, item.c.id), _in_order
        statement = statement.where(await _children_of(work, actor, parent_id))
        if page.after is not None:
            statement = statement.where(tuple_(item.c.position, item.c.id) > tuple_(*page.after))
    shown = page.of(await work.rows(statement.limit(page.fetch), of=ItemRow), place)
    return ItemList(items=[item_detail(row) for row in shown.items], cursor=shown.cursor)


def _newest(row: ItemRow) -> tuple[Any, ...]:
    """Ids of items are made in the order of time."""
    return (row.id,)


def _in_order(row: ItemRow) -> tuple[Any, ...]:
    return (row.position, row.id)


async def _children_of(
    work: UnitOfWork, actor: Actor, parent_id: Id | Literal["root"]
) -> ColumnElement[bool]:
    if isinstance(parent_id, str):
        return item.c.parent_item_id.is_(None)
    found = await placement(work, [actor.workspace_id], parent_id, actor.user_id)
    if found is None or level_on(found, actor.role) < Level.VIEW:
        raise NotFoundError
    return item.c.parent_item_id == parent_id

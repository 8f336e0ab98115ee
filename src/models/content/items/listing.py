"""Listing items: the children of one in their order, or all of the workspace, newest first."""

from typing import Literal

from sqlalchemy import ColumnElement, select

from models.content.items.queries import closed_items, item_detail, placement
from models.content.items.rows import ItemRow
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemList
from models.content.items.tables import item
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
        # Ids of items are made in the order of time.
        shown = await page.descending(work, statement, item.c.id, of=ItemRow)
    else:
        children = statement.where(await _children_of(work, actor, parent_id))
        shown = await page.ascending(work, children, item.c.position, item.c.id, of=ItemRow)
    return ItemList(items=[item_detail(row) for row in shown.items], cursor=shown.cursor)


async def _children_of(
    work: UnitOfWork, actor: Actor, parent_id: Id | Literal["root"]
) -> ColumnElement[bool]:
    if isinstance(parent_id, str):
        return item.c.parent_item_id.is_(None)
    if await placement.level(work, actor, parent_id) < Level.VIEW:
        raise NotFoundError
    return item.c.parent_item_id == parent_id

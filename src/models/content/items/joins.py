"""Parts of statements about items, for nouns that have items: joins, selections, columns."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, select

from models.content.items.rules import ItemKind
from models.content.items.tables import item
from models.core.base import Id

ITEM = item.c
"""The columns of items in the statements that this module and `queries` begin."""


def live_item_of(noun: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the item of a noun's rows, unless it is in the trash.

    To be spread: `select(…).join(*live_item_of(noun))`.
    """
    live_item = and_(
        item.c.workspace_id == noun.c.workspace_id,
        item.c.id == noun.c.item_id,
        item.c.deleted_at.is_(None),
    )
    return item, live_item


def placing(file: FromClause) -> ColumnElement[bool]:
    """The condition of the item that places a file, in the trash or not."""
    return and_(
        item.c.workspace_id == file.c.workspace_id,
        item.c.kind == ItemKind.FILE.value,
        item.c.target_id == file.c.id,
    )


def item_placing(file: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the item that places a file: `select(…).outerjoin(*item_placing(file))`."""
    return item, placing(file)


def live_items(workspace_id: Id, *columns: ColumnElement[Any]) -> Select[Any]:
    """The items of a workspace outside the trash: these columns of them, or all."""
    return select(*(columns or (item,))).where(
        item.c.workspace_id == workspace_id, item.c.deleted_at.is_(None)
    )

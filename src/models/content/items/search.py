"""Finding items by their titles, for the search of a workspace."""

from typing import Any

from sqlalchemy import CTE, Select, Uuid, case, null, select

from models.content.items.rules import ItemKind
from models.content.items.tables import item
from models.core.access.rules import Actor


def items_titled(actor: Actor, text: str, closed_items: CTE) -> Select[Any]:
    """The items with the text in their titles; none archived, in the trash or in `closed_items`."""
    is_database = item.c.kind == ItemKind.DATABASE.value
    return select(
        item.c.id,
        item.c.title,
        item.c.id.label("item_id"),
        item.c.kind.label("item_kind"),
        case((is_database, item.c.target_id), else_=null()).cast(Uuid).label("database_id"),
        item.c.icon,
        item.c.updated_at,
    ).where(
        item.c.workspace_id == actor.workspace_id,
        item.c.deleted_at.is_(None),
        item.c.archived.is_(False),
        item.c.title.icontains(text, autoescape=True),
        item.c.id.not_in(select(closed_items.c.id)),
    )

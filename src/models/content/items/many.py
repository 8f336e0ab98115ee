"""Creating many items at once."""

from collections.abc import Sequence

from sqlalchemy import insert, select

from models.content.items.commands import last_position
from models.content.items.rules import ItemKind
from models.content.items.tables import item
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.ids import new_id


async def create_items_for(
    work: UnitOfWork,
    workspace_id: Id,
    parent_item_id: Id | None,
    kind: ItemKind,
    targets: Sequence[tuple[Id | None, str]],
) -> list[Id]:
    """Give new resources, each with a title, their items, last below a parent that was checked."""
    first = await work.scalar(select(last_position(workspace_id, parent_item_id)))
    rows = [
        {
            "id": new_id(),
            "workspace_id": workspace_id,
            "parent_item_id": parent_item_id,
            "kind": kind.value,
            "target_id": target_id,
            "title": title,
            "position": first + place,
            "metadata": {},
            "created_at": work.now,
            "updated_at": work.now,
        }
        for place, (target_id, title) in enumerate(targets)
    ]
    if rows:
        await work.execute(insert(item), rows)
    return [row["id"] for row in rows]

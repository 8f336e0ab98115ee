"""Items that come into a workspace in one piece: out of sight until all of them are there."""

from typing import Any

from sqlalchemy import Select, update

from models.content.items.tables import item
from models.core.base import Id
from runtime.database import UnitOfWork


async def hide_items(work: UnitOfWork, workspace_id: Id, items: Select[Any]) -> None:
    """Keep items out of sight; `items` selects their ids."""
    await work.execute(
        update(item)
        .where(
            item.c.workspace_id == workspace_id, item.c.id.in_(items), item.c.deleted_at.is_(None)
        )
        .values(deleted_at=work.now)
    )


async def show_items(work: UnitOfWork, workspace_id: Id, items: Select[Any]) -> None:
    """Show items that were hidden."""
    await work.execute(
        update(item)
        .where(item.c.workspace_id == workspace_id, item.c.id.in_(items))
        .values(deleted_at=None, deleted_with=None)
    )

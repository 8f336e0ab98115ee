"""Removing items that have been in the trash for long enough, with all that belongs to them."""

from datetime import datetime

from sqlalchemy import exists, select

from models.content.files.tables import file
from models.content.items.rules import ItemKind
from models.content.items.tables import item
from models.core.purging import MAX_ROWS, purge
from runtime.database import UnitOfWork


async def purge_trash(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove items that went to the trash before a moment, with all that is theirs.

    Gives how many rows were removed or changed, at most `limit`; to be called until it is 0. What
    is below an item goes before it, and a file's item after its file: else the file would count
    as one that nothing places, and be seen again.
    """
    below = item.alias("below")
    old = (
        select(item.c.id)
        .where(
            item.c.deleted_at < before,
            ~exists().where(
                below.c.workspace_id == item.c.workspace_id, below.c.parent_item_id == item.c.id
            ),
            ~exists().where(
                item.c.kind == ItemKind.FILE.value,
                file.c.workspace_id == item.c.workspace_id,
                file.c.id == item.c.target_id,
            ),
        )
        .order_by(item.c.deleted_at, item.c.id)
    )
    return await purge(work, item, old, limit)

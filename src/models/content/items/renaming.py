"""Letting items follow the names of what they stand for."""

from collections.abc import Sequence

from sqlalchemy import bindparam, update

from models.content.items.tables import item
from models.core.base import Id
from models.core.revisions import next_updated_at
from runtime.database import UnitOfWork


async def rename_items(work: UnitOfWork, renamed: Sequence[tuple[Id, str, str]]) -> None:
    """Give items, each with its old and its new name, the new one; unless people named them."""
    if not renamed:
        return
    await work.execute(
        update(item)
        .where(item.c.id == bindparam("this"), item.c.title == bindparam("old"))
        .values(title=bindparam("new"), updated_at=next_updated_at(item.c.updated_at, work.now)),
        [{"this": one, "old": old, "new": new} for one, old, new in renamed],
    )

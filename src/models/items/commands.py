"""Placing resources in the tree of items."""

from sqlalchemy import func, insert, select, update

from models.access.placement import level_on
from models.access.rules import Actor, Level
from models.base import Id
from models.items.queries import placement
from models.items.rules import ItemKind
from models.items.tables import item
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError
from runtime.ids import new_id


async def check_parent(work: UnitOfWork, actor: Actor, parent_item_id: Id | None) -> None:
    """Whether the actor may put things below an item, or at the root when it is None.

    A command whose body names a parent asks this before it judges the rest (decisions C2).
    Raises `NotFoundError` when the actor does not see it, `DeniedError` without edit access.
    """
    if parent_item_id is None:
        level = actor.level
    else:
        found = await placement(work, [actor.workspace_id], parent_item_id, actor.user_id)
        level = Level.NONE if found is None else level_on(found, actor.role)
        if level < Level.VIEW:
            raise NotFoundError
    if level < Level.EDIT:
        raise DeniedError("Putting something here needs edit access to the place.")


async def create_item_for(
    work: UnitOfWork,
    actor: Actor,
    kind: ItemKind,
    target_id: Id,
    title: str,
    *,
    parent_item_id: Id | None = None,
    icon: str | None = None,
    order: float | None = None,
) -> Id:
    """Give a new resource its item, last among its siblings unless `order` says where.

    Raises what `check_parent` raises.
    """
    await check_parent(work, actor, parent_item_id)
    item_id = new_id()
    last = select(func.coalesce(func.max(item.c.position), -1) + 1).where(
        item.c.workspace_id == actor.workspace_id,
        item.c.parent_item_id.is_not_distinct_from(parent_item_id),
        item.c.deleted_at.is_(None),
    )
    await work.execute(
        insert(item).values(
            id=item_id,
            workspace_id=actor.workspace_id,
            parent_item_id=parent_item_id,
            kind=kind.value,
            target_id=target_id,
            title=title,
            icon=icon,
            position=last.scalar_subquery() if order is None else order,
            metadata={},
            created_at=work.now,
            updated_at=work.now,
        )
    )
    return item_id


async def rename_item(work: UnitOfWork, actor: Actor, item_id: Id, title: str) -> None:
    """Let an item carry the new label of what it places."""
    await work.execute(
        update(item)
        .where(item.c.workspace_id == actor.workspace_id, item.c.id == item_id)
        .values(title=title, updated_at=work.now)
    )

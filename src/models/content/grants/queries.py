"""Reading the access mode and the grants of an item."""

from typing import Protocol

from sqlalchemy import select

from models.content.grants.shapes import GrantBody, ItemAccess, LevelName
from models.content.items.tables import item, item_grant
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.people.members.queries import members_of
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


class _GrantRow(Protocol):
    user_id: Id
    level: int
    email: str | None
    name: str | None


async def holds_grant(work: UnitOfWork, actor: Actor, level: Level) -> bool:
    """True when the actor was granted this level on any item of the workspace."""
    held = select(item_grant.c.item_id).where(
        item_grant.c.workspace_id == actor.workspace_id,
        item_grant.c.user_id == actor.user_id,
        item_grant.c.level >= level,
    )
    return bool(await work.scalar(select(held.exists())))


async def item_access(work: UnitOfWork, actor: Actor, item_id: Id) -> ItemAccess:
    """The access mode and the grants of one item. Raises `NotFoundError`."""
    mode = await work.scalar(
        select(item.c.access_mode).where(
            item.c.workspace_id == actor.workspace_id, item.c.id == item_id
        )
    )
    if mode is None:
        raise NotFoundError("item")
    member = members_of(actor.workspace_id).subquery("member")
    rows = await work.rows(
        select(item_grant.c.user_id, item_grant.c.level, member.c.email, member.c.name)
        .join(member, member.c.user_id == item_grant.c.user_id)
        .where(item_grant.c.workspace_id == actor.workspace_id, item_grant.c.item_id == item_id)
        .order_by(item_grant.c.level.desc(), member.c.name, item_grant.c.user_id),
        of=_GrantRow,
    )
    grants = [
        GrantBody(
            user_id=row.user_id,
            email=row.email,
            name=row.name,
            level=LevelName(Level(row.level).name.lower()),
        )
        for row in rows
    ]
    return ItemAccess(item_id=item_id, access_mode=mode, grants=grants)

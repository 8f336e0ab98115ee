"""Grants: what one member may do with an item and what is below it, read and replaced.

See interface.md#item-levels.
"""

from enum import StrEnum
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import insert as upsert

from models.content.items.joins import item, item_grant, live_item_of
from models.content.items.queries import find_item
from models.content.items.rules import AccessMode
from models.core.access.rules import Actor, Level
from models.core.base import Id, Input, InputId, Shape
from models.core.bundles import USER, BundleKind, Stage
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, about, notify
from models.people.members import members_of, strangers
from models.people.users import display_name
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError

MAX_GRANTS = 500


class LevelName(StrEnum):
    """The levels that a grant can give; each includes the levels before it."""

    VIEW = "view"
    COMMENT = "comment"
    RUN = "run"
    EDIT = "edit"
    MANAGE = "manage"

    @property
    def level(self) -> Level:
        return Level[self.name]


class GrantInput(Input):
    user_id: InputId
    level: Annotated[LevelName, Field(strict=False)]


class ReplaceAccess(Input):
    """Body of replace access: the mode and all grants."""

    access_mode: Annotated[AccessMode, Field(strict=False)]
    grants: Annotated[list[GrantInput], Field(max_length=MAX_GRANTS)]


class GrantBody(Shape):
    user_id: Id
    email: str | None
    name: str | None
    level: LevelName


class ItemAccess(Shape):
    """The item's own mode and grants; what it inherits is at the items above it."""

    item_id: Id
    access_mode: AccessMode
    grants: list[GrantBody]


class _GrantRow(Protocol):
    user_id: Id
    level: int
    email: str | None
    name: str | None


async def holds_grant(work: UnitOfWork, actor: Actor, level: Level) -> bool:
    """True when the actor was granted this level on any item of the workspace."""
    held = sa.select(item_grant.c.item_id).where(
        item_grant.c.workspace_id == actor.workspace_id,
        item_grant.c.user_id == actor.user_id,
        item_grant.c.level >= level,
    )
    return bool(await work.scalar(sa.select(held.exists())))


async def item_access(work: UnitOfWork, actor: Actor, item_id: Id) -> ItemAccess:
    """The access mode and the grants of one item. Raises `NotFoundError`."""
    mode = await work.scalar(
        sa.select(item.c.access_mode).where(
            item.c.workspace_id == actor.workspace_id, item.c.id == item_id
        )
    )
    if mode is None:
        raise NotFoundError("item")
    member = members_of(actor.workspace_id).subquery("member")
    rows = await work.rows(
        sa.select(item_grant.c.user_id, item_grant.c.level, member.c.email, member.c.name)
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


async def grant_manage(work: UnitOfWork, actor: Actor, item_id: Id) -> None:
    """Let the actor manage an item, regardless of their earlier grants on it."""
    manage: dict[str, Any] = {"level": Level.MANAGE.value, "updated_at": work.now}
    await work.execute(
        upsert(item_grant)
        .values(
            workspace_id=actor.workspace_id,
            item_id=item_id,
            user_id=actor.user_id,
            created_at=work.now,
            **manage,
        )
        .on_conflict_do_update(index_elements=["workspace_id", "item_id", "user_id"], set_=manage)
    )


async def copy_grants(work: UnitOfWork, actor: Actor, copies: sa.FromClause) -> None:
    """Give items the grants of others; `copies` has columns `old` and `new` of item ids."""
    columns = ("workspace_id", "item_id", "user_id", "level", "created_at", "updated_at")
    await work.execute(
        sa.insert(item_grant).from_select(
            columns,
            sa.select(
                item_grant.c.workspace_id,
                copies.c.new,
                item_grant.c.user_id,
                item_grant.c.level,
                sa.literal(work.now),
                sa.literal(work.now),
            ).where(
                item_grant.c.workspace_id == actor.workspace_id,
                item_grant.c.item_id == copies.c.old,
            ),
        )
    )


async def replace_access(
    work: UnitOfWork, actor: Actor, item_id: Id, body: ReplaceAccess
) -> ItemAccess:
    """Give an item this mode and these grants, and no others.

    Raises `NotFoundError` for a user who is no member, `ValidationError` for one named twice.
    """
    user_ids = [grant.user_id for grant in body.grants]
    if await strangers(work, actor.workspace_id, user_ids):
        raise NotFoundError("user")
    for place, user_id in enumerate(user_ids):
        if user_id in user_ids[:place]:
            raise ValidationError.at(f"grants.{place}.userId", "has a grant in this list already")
    conditions = (item.c.workspace_id == actor.workspace_id, item.c.id == item_id)
    # The item's row orders concurrent replacements.
    await work.execute(
        sa.update(item)
        .where(*conditions)
        .values(access_mode=body.access_mode.value, updated_at=work.now)
    )
    old_grants = await work.rows(
        sa.delete(item_grant)
        .where(item_grant.c.workspace_id == actor.workspace_id, item_grant.c.item_id == item_id)
        .returning(item_grant.c.user_id)
    )
    if body.grants:
        await work.execute(
            sa.insert(item_grant).values(
                [
                    {
                        "workspace_id": actor.workspace_id,
                        "item_id": item_id,
                        "user_id": grant.user_id,
                        "level": grant.level.level.value,
                        "created_at": work.now,
                        "updated_at": work.now,
                    }
                    for grant in body.grants
                ]
            )
        )
    await _notify_shared(work, actor, item_id, set(user_ids) - {row.user_id for row in old_grants})
    return await item_access(work, actor, item_id)


async def _notify_shared(work: UnitOfWork, actor: Actor, item_id: Id, user_ids: set[Id]) -> None:
    """Notify the users who have a grant on the item now, and had none before."""
    if not user_ids:
        return
    place = await find_item(work, actor.workspace_id, item_id)
    notice = Notice(
        kind=NotificationKind.SHARE,
        title=about(f"{await display_name(work, actor.person)} shared “{place.title}” with you"),
        item_id=item_id,
        actor_user_id=actor.person,
    )
    await notify(work, actor.workspace_id, user_ids, notice)


def _bundled_rows(workspace_id: Id) -> sa.Select[Any]:
    return (
        sa.select(item_grant)
        .join(*live_item_of(item_grant))
        .where(item_grant.c.workspace_id == workspace_id)
    )


GRANTS = BundleKind(
    name="item_grant",
    stage=Stage.CREATING,
    file="items.ndjson",
    table=item_grant,
    rows=_bundled_rows,
    references={"item_id": "item", "user_id": USER},
    required=("user_id",),
    order=("item_id", "user_id"),
)

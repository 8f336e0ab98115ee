"""Changing who may do what with an item."""

from typing import Any

from sqlalchemy import FromClause, delete, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.content.grants.queries import item_access
from models.content.grants.shapes import ItemAccess, ReplaceAccess
from models.content.items.queries import find_item
from models.content.items.tables import item, item_grant
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.notifications.rules import about
from models.people.members.queries import strangers
from models.people.users.queries import display_name
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError


async def grant_manage(work: UnitOfWork, actor: Actor, item_id: Id) -> None:
    """Let the actor manage an item, whatever they were granted on it before."""
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


async def copy_grants(work: UnitOfWork, actor: Actor, copies: FromClause) -> None:
    """Give items the grants of others; `copies` has columns `old` and `new` of item ids."""
    columns = ("workspace_id", "item_id", "user_id", "level", "created_at", "updated_at")
    await work.execute(
        insert(item_grant).from_select(
            columns,
            select(
                item_grant.c.workspace_id,
                copies.c.new,
                item_grant.c.user_id,
                item_grant.c.level,
                literal(work.now),
                literal(work.now),
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
        update(item)
        .where(*conditions)
        .values(access_mode=body.access_mode.value, updated_at=work.now)
    )
    old_grants = await work.rows(
        delete(item_grant)
        .where(item_grant.c.workspace_id == actor.workspace_id, item_grant.c.item_id == item_id)
        .returning(item_grant.c.user_id)
    )
    if body.grants:
        await work.execute(
            insert(item_grant).values(
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

"""Notifications of what is written on surfaces: to those mentioned, and to those in a thread."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select

from models.content.items.queries import item_of_target
from models.content.surfaces.rules.references import references
from models.content.surfaces.tables import Surface, SurfaceComment, surface_comment
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify, notify_each
from models.messages.notifications.rules import about
from models.people.users.queries import display_name
from runtime.database import UnitOfWork

MOST_TOLD = 50
"""The most authors who are told of one more comment: the ones who wrote last."""
MOST_MENTIONED = 500
"""Mentions that one write tells of."""

_comment = surface_comment.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A surface and where it belongs: an item, or the database of a record."""

    id: Id
    item_id: Id | None = None
    database_id: Id | None = None
    record_id: Id | None = None


def home_of(row: Surface) -> Home:
    """The home of a surface's row."""
    return Home(
        id=row.id, item_id=row.item_id, database_id=row.database_id, record_id=row.record_id
    )


async def notify_mentioned(
    work: UnitOfWork, actor: Actor, home: Home, contents: Mapping[Id, JsonObject]
) -> None:
    """Notify those whom blocks mention, each once of a block, however often that is written."""
    mentions: dict[Id, list[Id]] = defaultdict(list)
    for block_id, content in contents.items():
        for reference in references(content):
            if reference.noun == "user":
                mentions[block_id].append(reference.id)
    if not mentions:
        return
    place = await item_of_target(work, actor.workspace_id, home.item_id, home.database_id)
    if place is None:
        return
    title = about(f"{await display_name(work, actor.person)} mentioned you on “{place.title}”")
    notices = [
        (
            user_ids,
            Notice(
                kind=NotificationKind.MENTION,
                title=title,
                item_id=place.id,
                record_id=home.record_id,
                actor_user_id=actor.person,
                data={"surfaceId": str(home.id), "blockId": str(block_id)},
                key=f"mention/{home.id}/{block_id}",
            ),
        )
        for block_id, user_ids in list(mentions.items())[:MOST_MENTIONED]
    ]
    await notify_each(work, actor.workspace_id, notices)


async def notify_of_comment(
    work: UnitOfWork, actor: Actor, home: Home, comment: SurfaceComment
) -> None:
    """Notify the authors of earlier comments: in the thread, or at all when this begins one."""
    place = await item_of_target(work, actor.workspace_id, home.item_id, home.database_id)
    if place is None:
        return
    notice = Notice(
        kind=NotificationKind.COMMENT,
        title=about(f"{await display_name(work, actor.person)} commented on “{place.title}”"),
        body=comment.body,
        item_id=place.id,
        record_id=home.record_id,
        actor_user_id=actor.person,
        data={"surfaceId": str(home.id), "commentId": str(comment.id)},
        key=f"comment/surface-comment/{comment.id}",
    )
    await notify(work, actor.workspace_id, await _authors(work, comment), notice)


async def _authors(work: UnitOfWork, comment: SurfaceComment) -> set[Id]:
    thread = comment.parent_comment_id
    statement = (
        select(_comment.author_user_id)
        .where(
            _comment.workspace_id == comment.workspace_id, _comment.surface_id == comment.surface_id
        )
        .order_by(_comment.created_at.desc())
        .limit(MOST_TOLD)
    )
    if thread is not None:
        statement = statement.where(
            (_comment.id == thread) | (_comment.parent_comment_id == thread)
        )
    return {row.author_user_id for row in await work.rows(statement)}

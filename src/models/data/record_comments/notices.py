"""Notifications of comments on records: to those mentioned, and to those in the thread."""

from sqlalchemy import select

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.record_comments.queries import of_record
from models.data.record_comments.tables import RecordComment, record_comment
from models.data.records.queries.records import RecordSubject, record_subject
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify_each
from models.messages.notifications.rules import about
from models.people.users.queries import display_name
from runtime.database import UnitOfWork

MOST_TOLD = 50
"""Authors of a thread who are told of one more comment: the last ones to write."""

_comment = record_comment.c


async def notify_of_comment(work: UnitOfWork, actor: Actor, comment: RecordComment) -> None:
    """Notify whom a new comment mentions, and the followers of the thread, or of the record.

    A record is followed by who made it, a thread by its authors.
    """
    subject = await record_subject(work, actor.workspace_id, comment.record_id)
    if comment.parent_comment_id is None:
        following = {subject.created_by_user_id} - {None}
    else:
        following = await _authors(work, actor, comment.record_id, comment.parent_comment_id)
    mentioned = set(comment.mentions)
    name = await display_name(work, actor.person)
    title = f"{name} commented on “{subject.title}”"
    await notify_each(
        work,
        actor.workspace_id,
        [
            (mentioned, _mention(actor, comment, subject, name)),
            (
                {id_ for id_ in following if id_ is not None} - mentioned,
                _notice(actor, comment, subject, NotificationKind.COMMENT, title),
            ),
        ],
    )


async def notify_of_mentions(work: UnitOfWork, actor: Actor, comment: RecordComment) -> None:
    """Notify those whom a changed comment mentions, and who have not been told of it before."""
    if comment.mentions:
        subject = await record_subject(work, actor.workspace_id, comment.record_id)
        notice = _mention(actor, comment, subject, await display_name(work, actor.person))
        await notify_each(work, actor.workspace_id, [(comment.mentions, notice)])


def _mention(actor: Actor, comment: RecordComment, subject: RecordSubject, name: str) -> Notice:
    title = f"{name} mentioned you on “{subject.title}”"
    return _notice(actor, comment, subject, NotificationKind.MENTION, title)


def _notice(
    actor: Actor, comment: RecordComment, subject: RecordSubject, kind: NotificationKind, title: str
) -> Notice:
    return Notice(
        kind=kind,
        title=about(title),
        body=comment.body,
        item_id=subject.item_id,
        record_id=comment.record_id,
        actor_user_id=actor.person,
        data={"commentId": str(comment.id)},
        key=f"{kind}/record-comment/{comment.id}",
    )


async def _authors(work: UnitOfWork, actor: Actor, record_id: Id, thread_id: Id) -> set[Id | None]:
    rows = await work.rows(
        select(_comment.author_user_id)
        .where(
            *of_record(actor.workspace_id, record_id),
            (_comment.id == thread_id) | (_comment.parent_comment_id == thread_id),
            _comment.deleted_at.is_(None),
        )
        .order_by(_comment.created_at.desc())
        .limit(MOST_TOLD)
    )
    return {row.author_user_id for row in rows}

"""Comments on records: what members say to each other about one, in threads."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Actor, Level, Placement, level_on
from models.core.base import Id, Input, InputId, Moment, Shape
from models.core.bundles import USER, BundleKind, Stage
from models.core.pagination import Listed, PageRequest
from models.data.records.bundle import live_records
from models.data.records.queries import RecordSubject, record_subject
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, about, notify_each
from models.people.members import members_among
from models.people.users import display_name
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, Detail, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of


class RecordComment(SQLModel, table=True):
    """A comment, or the answer to one; `resolved_at` closes the thread that a comment begins.

    Words of a deleted comment are gone; its row stays for the answers it has.
    """

    __tablename__ = "record_comment"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "record_id", "id"),
        same_workspace("record_id", "record.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["workspace_id", "record_id", "parent_comment_id"],
            ["record_comment.workspace_id", "record_comment.record_id", "record_comment.id"],
            name="fk_record_comment_parent",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("parent_comment_id <> id", name="not_its_own_parent"),
    )

    id: Id = TableField(primary_key=True)
    workspace_id: Id
    record_id: Id
    parent_comment_id: Id | None = None
    author_user_id: Id
    body: str
    mentions: list[Id] = TableField(sa_type=sa.ARRAY(sa.Uuid))
    created_at: datetime = TableField(sa_type=Timestamp)
    updated_at: datetime = TableField(sa_type=Timestamp)
    resolved_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    deleted_at: datetime | None = TableField(default=None, sa_type=Timestamp)


record_comment = table_of(RecordComment)

MAX_MENTIONS = 50

CommentText = Annotated[str, Field(min_length=1, max_length=10_000)]


class CreateRecordComment(Input):
    """Body of create comment; `parentCommentId` makes it a reply to that comment."""

    body: CommentText
    parent_comment_id: InputId | None = None
    mentions: Annotated[list[InputId], Field(max_length=MAX_MENTIONS)] | None = None


class UpdateRecordComment(Input):
    """Body of update comment; `resolved` resolves or reopens the thread of a first comment."""

    body: CommentText | None = None
    mentions: Annotated[list[InputId], Field(max_length=MAX_MENTIONS)] | None = None
    resolved: bool | None = None


class RecordCommentDetail(Shape):
    """A comment; a deleted one that has replies is shown without its text."""

    id: Id
    record_id: Id
    parent_comment_id: Id | None
    author_user_id: Id
    body: str
    mentions: list[Id]
    created_at: Moment
    updated_at: Moment
    resolved_at: Moment | None
    deleted_at: Moment | None


class RecordCommentList(Listed):
    comments: list[RecordCommentDetail]


_ANSWER = record_comment.alias("answer")


def of_record(workspace_id: Id, record_id: Id) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of the comments on a record, deleted ones included."""
    return (record_comment.c.workspace_id == workspace_id, record_comment.c.record_id == record_id)


async def list_comments(
    work: UnitOfWork, workspace_id: Id, record_id: Id, page: PageRequest
) -> RecordCommentList:
    """The comments on a record in the order in which they were made."""
    answers = sa.select(_ANSWER.c.id).where(
        _ANSWER.c.workspace_id == record_comment.c.workspace_id,
        _ANSWER.c.record_id == record_comment.c.record_id,
        _ANSWER.c.parent_comment_id == record_comment.c.id,
        _ANSWER.c.deleted_at.is_(None),
    )
    statement = sa.select(record_comment).where(
        *of_record(workspace_id, record_id),
        sa.or_(record_comment.c.deleted_at.is_(None), answers.exists()),
    )
    oldest = (record_comment.c.created_at, record_comment.c.id)
    shown = await page.ascending(work, statement, *oldest, of=RecordComment)
    return RecordCommentList.of(shown, comment_detail)


def comment_detail(row: RecordComment) -> RecordCommentDetail:
    """A row of the table as the interface shows it."""
    return RecordCommentDetail.model_validate(row)


async def create_comment(
    work: UnitOfWork, actor: Actor, record_id: Id, body: CreateRecordComment
) -> RecordCommentDetail:
    """A new comment on a record, or an answer to one.

    Raises `NotFoundError` for the comment it answers, `ValidationError` for an answer to an answer
    and for mentions of others than members.
    """
    if body.parent_comment_id is not None:
        parent = await _hold(work, actor, (record_id, body.parent_comment_id))
        if parent.parent_comment_id is not None:
            raise ValidationError.at(
                "parentCommentId", "is a reply itself; reply to the first comment of the thread"
            )
    mentions = await _members(work, actor, body.mentions or ())
    statement = (
        sa.insert(record_comment)
        .values(
            id=new_id(),
            workspace_id=actor.workspace_id,
            record_id=record_id,
            parent_comment_id=body.parent_comment_id,
            author_user_id=actor.user_id,
            body=body.body,
            mentions=mentions,
            created_at=work.now,
            updated_at=work.now,
        )
        .returning(record_comment)
    )
    made = await _written(work, statement)
    await notify_of_comment(work, actor, made)
    return comment_detail(made)


async def update_comment(
    work: UnitOfWork,
    actor: Actor,
    placement: Placement | None,
    place: tuple[Id, Id],
    body: UpdateRecordComment,
) -> RecordCommentDetail:
    """Change one's own words, or as a manager anyone's; anyone resolves a thread.

    `place` is (record, comment). Raises `NotFoundError`, `DeniedError`, `ValidationError`.
    """
    comment = await _hold(work, actor, place)
    if body.body is not None or body.mentions is not None:
        _check_own(actor, placement, comment)
    if body.resolved is not None and comment.parent_comment_id is not None:
        raise ValidationError.at("resolved", "applies to the first comment of the thread")
    values: dict[str, Any] = {}
    if body.body is not None:
        values["body"] = body.body
    if body.mentions is not None:
        values["mentions"] = await _members(work, actor, body.mentions)
    if body.resolved is not None and body.resolved != (comment.resolved_at is not None):
        values["resolved_at"] = work.now if body.resolved else None
    if not values:
        return comment_detail(comment)
    changed = await _change(work, actor, place, {**values, "updated_at": work.now})
    if "mentions" in values:
        await notify_of_mentions(work, actor, changed)
    return comment_detail(changed)


async def delete_comment(
    work: UnitOfWork, actor: Actor, placement: Placement | None, place: tuple[Id, Id]
) -> RecordCommentDetail:
    """Take back the words of a comment of one's own, or as a manager of anyone's.

    Answers to it stay. Raises `NotFoundError`, `DeniedError`.
    """
    _check_own(actor, placement, await _hold(work, actor, place))
    gone = {"body": "", "mentions": [], "deleted_at": work.now, "updated_at": work.now}
    return comment_detail(await _change(work, actor, place, gone))


def _check_own(actor: Actor, placement: Placement | None, comment: RecordComment) -> None:
    level = Level.NONE if placement is None else level_on(placement, actor.role)
    if comment.author_user_id != actor.user_id and level < Level.MANAGE:
        raise DeniedError(
            "Only its author, or someone with manage access to the database, can do this."
        )


async def _hold(work: UnitOfWork, actor: Actor, place: tuple[Id, Id]) -> RecordComment:
    """The comment, locked. Raises `NotFoundError` also for a deleted one."""
    statement = sa.select(record_comment).where(*_this(actor, place)).with_for_update()
    return await work.one(statement, "comment", of=RecordComment)


async def _change(
    work: UnitOfWork, actor: Actor, place: tuple[Id, Id], values: dict[str, Any]
) -> RecordComment:
    statement = sa.update(record_comment).where(*_this(actor, place)).values(**values)
    return await _written(work, statement.returning(record_comment))


async def _written(work: UnitOfWork, statement: sa.Executable) -> RecordComment:
    (row,) = await work.rows(statement, of=RecordComment)
    return row


def _this(actor: Actor, place: tuple[Id, Id]) -> tuple[sa.ColumnElement[bool], ...]:
    record_id, comment_id = place
    return (
        *of_record(actor.workspace_id, record_id),
        record_comment.c.id == comment_id,
        record_comment.c.deleted_at.is_(None),
    )


async def _members(work: UnitOfWork, actor: Actor, mentions: Sequence[Id]) -> list[Id]:
    """The people mentioned, each once. Raises `ValidationError` for a person who is no member."""
    people = list(dict.fromkeys(mentions))
    if not people:
        return []
    rows = await work.rows(members_among(actor.workspace_id, people))
    members = {row.user_id for row in rows}
    problems = [
        Detail(f"mentions.{place}", f"{user} is not a member of this workspace")
        for place, user in enumerate(mentions)
        if user not in members
    ]
    if problems:
        raise ValidationError(f"{problems[0].path}: {problems[0].message}", problems)
    return people


MOST_TOLD = 50
"""Maximum authors of a thread who are notified of a new comment: the ones who wrote last."""

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
    """Notify the people whom a changed comment mentions, but for those it notified before."""
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
        sa.select(_comment.author_user_id)
        .where(
            *of_record(actor.workspace_id, record_id),
            (_comment.id == thread_id) | (_comment.parent_comment_id == thread_id),
            _comment.deleted_at.is_(None),
        )
        .order_by(_comment.created_at.desc())
        .limit(MOST_TOLD)
    )
    return {row.author_user_id for row in rows}


def _bundled_rows(workspace_id: Id) -> sa.Select[Any]:
    return sa.select(record_comment).where(
        record_comment.c.workspace_id == workspace_id,
        record_comment.c.record_id.in_(live_records(workspace_id)),
    )


RECORD_COMMENTS = BundleKind(
    name="record_comment",
    stage=Stage.CONTENT,
    file="record_comments.ndjson",
    table=record_comment,
    rows=_bundled_rows,
    references={
        "record_id": "record",
        "parent_comment_id": "record_comment",
        "author_user_id": USER,
        "mentions": USER,
    },
    parent="parent_comment_id",
)

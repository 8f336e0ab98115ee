"""Writing comments on records."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Executable, insert, select, update

from models.core.access.placement import Placement, level_on
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.data.record_comments.notices import notify_of_comment, notify_of_mentions
from models.data.record_comments.queries import comment_detail, of_record
from models.data.record_comments.shapes import (
    CreateRecordComment,
    RecordCommentDetail,
    UpdateRecordComment,
)
from models.data.record_comments.tables import RecordComment, record_comment
from models.people.members.queries import members_among
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, Detail, NotFoundError, ValidationError
from runtime.ids import new_id


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
                "parentCommentId", "is an answer itself; answer the comment that began the thread"
            )
    mentions = await _members(work, actor, body.mentions or ())
    statement = (
        insert(record_comment)
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
    """Change one's own words, or as a manager anybody's; anybody resolves a thread.

    `place` is (record, comment). Raises `NotFoundError`, `DeniedError`, `ValidationError`.
    """
    comment = await _hold(work, actor, place)
    if body.body is not None or body.mentions is not None:
        _check_own(actor, placement, comment)
    if body.resolved is not None and comment.parent_comment_id is not None:
        raise ValidationError.at("resolved", "is said of the comment that began the thread")
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
    """Take back the words of a comment of one's own, or as a manager of anybody's.

    Answers to it stay. Raises `NotFoundError`, `DeniedError`.
    """
    _check_own(actor, placement, await _hold(work, actor, place))
    gone = {"body": "", "mentions": [], "deleted_at": work.now, "updated_at": work.now}
    return comment_detail(await _change(work, actor, place, gone))


def _check_own(actor: Actor, placement: Placement | None, comment: RecordComment) -> None:
    level = Level.NONE if placement is None else level_on(placement, actor.role)
    if comment.author_user_id != actor.user_id and level < Level.MANAGE:
        raise DeniedError("This needs to be your own comment, or manage access to the database.")


async def _hold(work: UnitOfWork, actor: Actor, place: tuple[Id, Id]) -> RecordComment:
    """The comment, locked. Raises `NotFoundError` also for a deleted one."""
    statement = select(record_comment).where(*_this(actor, place)).with_for_update()
    held = await work.first(statement, of=RecordComment)
    if held is None:
        raise NotFoundError("comment")
    return held


async def _change(
    work: UnitOfWork, actor: Actor, place: tuple[Id, Id], values: dict[str, Any]
) -> RecordComment:
    statement = update(record_comment).where(*_this(actor, place)).values(**values)
    return await _written(work, statement.returning(record_comment))


async def _written(work: UnitOfWork, statement: Executable) -> RecordComment:
    (row,) = await work.rows(statement, of=RecordComment)
    return row


def _this(actor: Actor, place: tuple[Id, Id]) -> tuple[ColumnElement[bool], ...]:
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

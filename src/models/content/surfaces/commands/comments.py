"""Writing comments on surfaces: threads, each begun by one comment and answered by others."""

from typing import Any

from sqlalchemy import delete, func, insert, select, update

from models.content.surfaces.notices import home_of, notify_of_comment
from models.content.surfaces.queries import find_block, find_surface
from models.content.surfaces.shapes import (
    CommentDetail,
    CreateComment,
    DeletedComment,
    UpdateComment,
)
from models.content.surfaces.tables import SurfaceComment, surface_comment
from models.core.access.placement import Placement, level_on
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id


async def create_comment(
    work: UnitOfWork, actor: Actor, surface_id: Id, body: CreateComment
) -> CommentDetail:
    """Begin a thread, or answer one; an answer is about the block its thread is about.

    Raises `NotFoundError`, also for the block or the thread.
    """
    surface_row = await find_surface(work, actor, surface_id, Scope.BLOCKS_COMMENT)
    block_id = body.block_id
    if body.block_id is not None:
        await find_block(work, actor, surface_id, body.block_id)
    if body.parent_comment_id is not None:
        thread = await _find(work, actor, surface_id, body.parent_comment_id)
        if thread.parent_comment_id is not None:
            raise ValidationError.at("parentCommentId", "is an answer; name the comment it answers")
        if block_id not in {None, thread.block_id}:
            raise ValidationError.at("blockId", "is not the block the thread is about")
        block_id = thread.block_id
    (comment,) = await work.rows(
        insert(surface_comment)
        .values(
            id=new_id(),
            workspace_id=actor.workspace_id,
            surface_id=surface_id,
            block_id=block_id,
            parent_comment_id=body.parent_comment_id,
            author_user_id=actor.user_id,
            body=body.body,
            created_at=work.now,
            updated_at=work.now,
        )
        .returning(surface_comment),
        of=SurfaceComment,
    )
    await notify_of_comment(work, actor, home_of(surface_row), comment)
    return CommentDetail.model_validate(comment)


async def update_comment(
    work: UnitOfWork, actor: Actor, surface_id: Id, comment_id: Id, body: UpdateComment
) -> CommentDetail:
    """Change one's own words, or resolve a thread and open it again.

    Raises `NotFoundError`, `DeniedError` for the words of another, `ValidationError` for resolving
    an answer.
    """
    await find_surface(work, actor, surface_id, Scope.BLOCKS_COMMENT)
    comment = await _find(work, actor, surface_id, comment_id)
    if body.body is not None and comment.author_user_id != actor.user_id:
        raise DeniedError("Only its author changes the words of a comment.")
    if body.resolved is not None and comment.parent_comment_id is not None:
        raise ValidationError.at("resolved", "is of the whole thread; name its first comment")
    values: dict[str, Any] = {}
    if body.body is not None:
        values = {"body": body.body, "updated_at": func.greatest(work.now, comment.updated_at)}
    if body.resolved is True and comment.resolved_at is None:
        values |= {"resolved_at": work.now, "resolved_by_user_id": actor.user_id}
    if body.resolved is False:
        values |= {"resolved_at": None, "resolved_by_user_id": None}
    if values:
        statement = update(surface_comment).where(*_this(actor, surface_id, comment_id))
        await work.execute(statement.values(values))
    return CommentDetail.model_validate(await _find(work, actor, surface_id, comment_id))


async def delete_comment(
    work: UnitOfWork, actor: Actor, placement: Placement | None, surface_id: Id, comment_id: Id
) -> DeletedComment:
    """Delete one's own comment, or as a manager of the place anybody's; a thread goes whole.

    Raises `NotFoundError`, `DeniedError` for the comment of another.
    """
    await find_surface(work, actor, surface_id, Scope.BLOCKS_COMMENT)
    found = await _find(work, actor, surface_id, comment_id)
    level = Level.NONE if placement is None else level_on(placement, actor.role)
    if found.author_user_id != actor.user_id and level < Level.MANAGE:
        raise DeniedError("This needs to be your own comment, or manage access to the surface.")
    await work.execute(delete(surface_comment).where(*_this(actor, surface_id, comment_id)))
    return DeletedComment(id=comment_id)


def _this(actor: Actor, surface_id: Id, comment_id: Id) -> tuple[Any, ...]:
    return (
        surface_comment.c.workspace_id == actor.workspace_id,
        surface_comment.c.surface_id == surface_id,
        surface_comment.c.id == comment_id,
    )


async def _find(work: UnitOfWork, actor: Actor, surface_id: Id, comment_id: Id) -> SurfaceComment:
    """The comment, held until the transaction ends. Raises `NotFoundError`."""
    row = await work.first(
        select(surface_comment)
        .where(*_this(actor, surface_id, comment_id))
        .with_for_update(key_share=True),
        of=SurfaceComment,
    )
    if row is None:
        raise NotFoundError("comment")
    return row

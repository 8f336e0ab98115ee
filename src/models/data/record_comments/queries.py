"""Reading comments on records."""

from sqlalchemy import ColumnElement, or_, select

from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.record_comments.shapes import RecordCommentDetail, RecordCommentList
from models.data.record_comments.tables import RecordComment, record_comment
from runtime.database import UnitOfWork

_ANSWER = record_comment.alias("answer")


def of_record(workspace_id: Id, record_id: Id) -> tuple[ColumnElement[bool], ...]:
    """The conditions of the comments on a record, deleted ones included."""
    return (record_comment.c.workspace_id == workspace_id, record_comment.c.record_id == record_id)


async def list_comments(
    work: UnitOfWork, workspace_id: Id, record_id: Id, page: PageRequest
) -> RecordCommentList:
    """The comments on a record in the order in which they were made."""
    answers = select(_ANSWER.c.id).where(
        _ANSWER.c.workspace_id == record_comment.c.workspace_id,
        _ANSWER.c.record_id == record_comment.c.record_id,
        _ANSWER.c.parent_comment_id == record_comment.c.id,
        _ANSWER.c.deleted_at.is_(None),
    )
    statement = select(record_comment).where(
        *of_record(workspace_id, record_id),
        or_(record_comment.c.deleted_at.is_(None), answers.exists()),
    )
    oldest = (record_comment.c.created_at, record_comment.c.id)
    shown = await page.ascending(work, statement, *oldest, of=RecordComment)
    return RecordCommentList(
        comments=[comment_detail(row) for row in shown.items], cursor=shown.cursor
    )


def comment_detail(row: RecordComment) -> RecordCommentDetail:
    """A row of the table as the interface shows it."""
    return RecordCommentDetail.model_validate(row)

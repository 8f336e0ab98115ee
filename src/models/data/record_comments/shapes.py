"""Comments on records on the wire."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, InputId, Moment, Nullable, Shape

MAX_MENTIONS = 50

CommentText = Annotated[str, Field(min_length=1, max_length=10_000)]


class CreateRecordComment(Input):
    """Body of create comment; `parentCommentId` makes it an answer to that comment."""

    body: CommentText
    parent_comment_id: InputId | None = None
    mentions: Annotated[list[InputId], Field(max_length=MAX_MENTIONS)] | None = None


class UpdateRecordComment(Input):
    """Body of update comment; `resolved` closes or opens again the thread a comment begins."""

    body: CommentText | None = None
    mentions: Annotated[list[InputId], Field(max_length=MAX_MENTIONS)] | None = None
    resolved: bool | None = None


class RecordCommentDetail(Shape):
    """A comment; a deleted one that has answers is shown without its words."""

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


class RecordCommentList(Shape):
    comments: list[RecordCommentDetail]
    cursor: Nullable[str]

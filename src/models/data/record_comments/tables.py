"""The table of comments on records."""

from datetime import datetime

from sqlalchemy import ARRAY, CheckConstraint, ForeignKeyConstraint, UniqueConstraint, Uuid
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, same_workspace, table_of


class RecordComment(SQLModel, table=True):
    """A comment, or the answer to one; `resolved_at` closes the thread that a comment begins.

    Words of a deleted comment are gone; its row stays for the answers it has.
    """

    __tablename__ = "record_comment"
    __table_args__ = (
        UniqueConstraint("workspace_id", "record_id", "id"),
        same_workspace("record_id", "record.id", ondelete="CASCADE"),
        ForeignKeyConstraint(
            ["workspace_id", "record_id", "parent_comment_id"],
            ["record_comment.workspace_id", "record_comment.record_id", "record_comment.id"],
            name="fk_record_comment_parent",
            ondelete="CASCADE",
        ),
        CheckConstraint("parent_comment_id <> id", name="not_its_own_parent"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    record_id: Id
    parent_comment_id: Id | None = None
    author_user_id: Id
    body: str
    mentions: list[Id] = Field(sa_type=ARRAY(Uuid))
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)
    resolved_at: datetime | None = Field(default=None, sa_type=Timestamp)
    deleted_at: datetime | None = Field(default=None, sa_type=Timestamp)


record_comment = table_of(RecordComment)

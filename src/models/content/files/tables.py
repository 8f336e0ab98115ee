"""The table of stored files."""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, partial_index, table_of


class File(SQLModel, table=True):
    """The facts known of one object of the store; its bytes never change, so copies share them.

    An item of kind `file` may place it. `deleted_at` puts a file in the trash by itself, for a
    placed one its item does. A `private` file that no item places is its maker's alone.
    """

    __tablename__ = "file"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id"),
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        CheckConstraint("byte_size >= 0", name="byte_size"),
        CheckConstraint("octet_length(sha256) = 32", name="sha256"),
        partial_index(
            "ix_file_workspace_id_created_at_id",
            "workspace_id",
            "created_at",
            "id",
            where="deleted_at IS NULL",
        ),
        Index("ix_file_object_key", "object_key"),
        partial_index("ix_file_deleted_at", "deleted_at", where="deleted_at IS NOT NULL"),
        partial_index("ix_file_private", "created_at", where="private"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    name: str
    mime_type: str
    byte_size: int = Field(sa_type=BigInteger)
    sha256: bytes = Field(sa_type=BYTEA)
    object_key: str
    created_by_user_id: Id
    private: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    created_at: datetime = Field(sa_type=Timestamp)
    deleted_at: datetime | None = Field(default=None, sa_type=Timestamp)


file = table_of(File)

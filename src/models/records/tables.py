"""The table of records."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.base import Id
from runtime.schema import Timestamp, table_of


class Record(SQLModel, table=True):
    """A record: `data` maps field keys to values; the title lives in its own column alone.

    `number` is set when the database has an auto_number field.
    """

    __tablename__ = "record"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id"),
        ForeignKeyConstraint(
            ["workspace_id", "database_id"], ["database.workspace_id", "database.id"]
        ),
        CheckConstraint("jsonb_typeof(data) = 'object'", name="data_is_object"),
        CheckConstraint("NOT data ? 'title'", name="title_has_its_column"),
        Index(
            "ix_record_workspace_id_database_id_archived_created_at_id",
            "workspace_id",
            "database_id",
            "archived",
            text("created_at DESC"),
            text("id DESC"),
            postgresql_where=text("deleted_at IS NULL"),
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    database_id: Id
    content_surface_id: Id | None = None
    title: str
    data: dict[str, Any] = Field(sa_type=JSONB)
    number: int | None = Field(default=None, sa_type=BigInteger)
    archived: bool
    created_by_user_id: Id | None = None
    updated_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)
    deleted_at: datetime | None = Field(default=None, sa_type=Timestamp)


record = table_of(Record)

"""The table of record templates."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, partial_index, same_workspace, table_of


class RecordTemplate(SQLModel, table=True):
    """Prefilled values of a record; `data` holds the title too, `relations` ids as text.

    The surface belongs to the template alone; its blocks are copied to new records.
    """

    __tablename__ = "record_template"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id"),
        same_workspace("database_id", "database.id"),
        same_workspace("content_surface_id", "surface.id"),
        CheckConstraint("jsonb_typeof(data) = 'object'", name="data_is_object"),
        CheckConstraint("jsonb_typeof(relations) = 'object'", name="relations_is_object"),
        Index("ix_record_template_label", "workspace_id", "database_id", "label", "id"),
        partial_index(
            "uq_record_template_default",
            "workspace_id",
            "database_id",
            where="is_default",
            unique=True,
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    database_id: Id
    label: str
    description: str | None = None
    icon: str | None = None
    data: dict[str, Any] = Field(sa_type=JSONB)
    relations: dict[str, Any] = Field(sa_type=JSONB)
    content_surface_id: Id
    is_default: bool
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


record_template = table_of(RecordTemplate)

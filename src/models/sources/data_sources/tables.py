"""The table of data sources."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.sources.data_sources.rules.configs import DataSourceKind
from runtime.schema import Timestamp, one_of, same_workspace, table_of


class DataSource(SQLModel, table=True):
    """A data source; its label is the title of its item.

    `fields` maps its columns to the fields of the target database. Its schedule refreshes it in
    the name of who created it; due times that met another refresh are `joined_fires`.
    """

    __tablename__ = "data_source"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id"),
        UniqueConstraint("workspace_id", "key"),
        same_workspace("item_id", "item.id"),
        same_workspace("target_database_id", "database.id"),
        one_of("kind", DataSourceKind),
        Index("ix_data_source_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        Index(
            "ix_data_source_workspace_id_target_database_id", "workspace_id", "target_database_id"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id = Field(unique=True)
    key: str
    kind: str
    config: dict[str, Any] = Field(sa_type=JSONB)
    fields: list[dict[str, Any]] = Field(sa_type=JSONB)
    target_database_id: Id | None = None
    key_fields: list[str] = Field(sa_type=JSONB)
    write_mode: str
    removed_rows: str
    removal_guard_percent: int
    schedule: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    next_run_at: datetime | None = Field(default=None, sa_type=Timestamp)
    skipped_fires: int = Field(default=0, sa_column_kwargs={"server_default": text("0")})
    missed_fires: int = Field(default=0, sa_column_kwargs={"server_default": text("0")})
    joined_fires: int = Field(default=0, sa_column_kwargs={"server_default": text("0")})
    last_joined_at: datetime | None = Field(default=None, sa_type=Timestamp)
    enabled: bool
    created_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


data_source = table_of(DataSource)

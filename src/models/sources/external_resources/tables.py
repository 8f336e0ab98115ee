"""The table of mounts."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.sources.external_resources.rules.resources import MountStatus
from runtime.schema import Timestamp, one_of, table_of


class Mount(SQLModel, table=True):
    """A resource of another provider; without a connection it is a link and is never synced."""

    __tablename__ = "mount"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id"),
        ForeignKeyConstraint(["workspace_id", "item_id"], ["item.workspace_id", "item.id"]),
        one_of("status", MountStatus),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id = Field(unique=True)
    connection_id: Id | None = None
    resource: dict[str, Any] = Field(sa_type=JSONB)
    recursive: bool
    status: str
    last_synced_at: datetime | None = Field(default=None, sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


mount = table_of(Mount)

"""The table of the mirror: what providers answered a moment ago."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, LargeBinary
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, same_workspace, table_of


class ResourceMirror(SQLModel, table=True):
    """One answer of a provider to one member, through one connection as it was then.

    `digest` is that of the question. A content is served again only while the provider itself
    says that its `revision` is this one.
    """

    __tablename__ = "resource_mirror"
    __table_args__ = (
        same_workspace("connection_id", "connection.id", ondelete="CASCADE"),
        Index("ix_resource_mirror_expires_at", "expires_at"),
        {"prefixes": ["UNLOGGED"]},
    )

    workspace_id: Id = Field(primary_key=True)
    connection_id: Id = Field(primary_key=True)
    user_id: Id = Field(primary_key=True)
    digest: bytes = Field(primary_key=True, sa_type=LargeBinary)
    revision: str | None = None
    answer: dict[str, Any] = Field(sa_type=JSONB)
    expires_at: datetime = Field(sa_type=Timestamp)


resource_mirror = table_of(ResourceMirror)

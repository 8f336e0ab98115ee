"""The table of the workspace log."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Identity, Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class WorkspaceEvent(SQLModel, table=True):
    """One event; `seq` grows in the order in which a workspace's events were committed.

    With an `audience_user_id` only that user sees it.
    """

    __tablename__ = "workspace_event"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        Index("ix_workspace_event_workspace_id_seq", "workspace_id", "seq"),
        Index("ix_workspace_event_at", "at"),
    )

    seq: int = Field(sa_type=BigInteger, sa_column_args=[Identity(always=True)], primary_key=True)
    workspace_id: Id
    type: str
    at: datetime = Field(sa_type=Timestamp)
    actor_type: str
    actor_user_id: Id | None = None
    audience_user_id: Id | None = None
    data: dict[str, Any] = Field(sa_type=JSONB)


workspace_event = table_of(WorkspaceEvent)

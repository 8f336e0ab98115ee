"""The table of notifications."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.messages.notification_preferences import NotificationKind
from runtime.postgresql.schema import Timestamp, one_of, table_of

_ORDER = ("user_id", "workspace_id", "created_at", "id")


class Notification(SQLModel, table=True):
    """A message to one user in one workspace."""

    __tablename__ = "notification"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        one_of("kind", NotificationKind),
        Index("ix_notification_all", *_ORDER),
        Index("ix_notification_kept", *_ORDER, postgresql_where=text("archived_at IS NULL")),
        Index(
            "ix_notification_unread",
            *_ORDER,
            postgresql_where=text("read_at IS NULL AND archived_at IS NULL"),
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    user_id: Id
    kind: str
    title: str
    body: str
    item_id: Id | None = None
    record_id: Id | None = None
    run_id: Id | None = None
    actor_user_id: Id | None = None
    data: dict[str, Any] = Field(sa_type=JSONB)
    read_at: datetime | None = Field(default=None, sa_type=Timestamp)
    archived_at: datetime | None = Field(default=None, sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)


notification = table_of(Notification)

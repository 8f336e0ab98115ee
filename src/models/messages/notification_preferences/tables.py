"""The table of notification preferences."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class NotificationPreference(SQLModel, table=True):
    """The choices of one user, in every workspace; without a row everything is by default."""

    __tablename__ = "notification_preference"
    __table_args__ = (ForeignKeyConstraint(["user_id"], ["app_user.id"]),)

    user_id: Id = Field(primary_key=True)
    choices: dict[str, Any] = Field(sa_type=JSONB)
    updated_at: datetime = Field(sa_type=Timestamp)


notification_preference = table_of(NotificationPreference)

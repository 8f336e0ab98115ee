"""The table of audience segments that administrators made."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class AudienceSegment(SQLModel, table=True):
    """A segment of the platform's own; `rule` is a filter over facts of a caller."""

    __tablename__ = "audience_segment"
    __table_args__ = (ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),)

    key: str = Field(primary_key=True)
    label: str
    description: str | None = None
    rule: dict[str, Any] = Field(sa_type=JSONB)
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)


audience_segment = table_of(AudienceSegment)

"""The table of home layouts."""

from datetime import datetime
from typing import Any

from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, same_workspace, table_of


class HomeLayout(SQLModel, table=True):
    """The widgets of one member in one workspace; they go with the membership."""

    __tablename__ = "home_layout"
    __table_args__ = (same_workspace("user_id", "workspace_member.user_id", ondelete="CASCADE"),)

    workspace_id: Id = Field(primary_key=True)
    user_id: Id = Field(primary_key=True)
    widgets: list[dict[str, Any]] = Field(sa_type=JSONB)
    updated_at: datetime = Field(sa_type=Timestamp)


home_layout = table_of(HomeLayout)

"""The table of saved filters."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, partial_index, same_workspace, table_of


class SavedRunFilter(SQLModel, table=True):
    """A filter under a name; without `owner_user_id` it is shared.

    It goes with the membership of its owner, and with the automation that it names.
    """

    __tablename__ = "saved_run_filter"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        same_workspace("owner_user_id", "workspace_member.user_id", ondelete="CASCADE"),
        same_workspace("automation_id", "automation.id", ondelete="CASCADE"),
        Index("ix_saved_run_filter_workspace_id", "workspace_id", "owner_user_id"),
        partial_index(
            "ix_saved_run_filter_automation_id", "automation_id", where="automation_id IS NOT NULL"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    owner_user_id: Id | None = None
    automation_id: Id | None = None
    label: str
    query: dict[str, Any] = Field(sa_type=JSONB)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


saved_run_filter = table_of(SavedRunFilter)

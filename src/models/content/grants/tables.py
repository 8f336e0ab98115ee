"""The table of grants."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class ItemGrant(SQLModel, table=True):
    """What one member may do with one item and what is below it; `level` is that of `Level`."""

    __tablename__ = "item_grant"
    __table_args__ = (
        ForeignKeyConstraint(
            ["workspace_id", "item_id"], ["item.workspace_id", "item.id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["workspace_id", "user_id"],
            ["workspace_member.workspace_id", "workspace_member.user_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("level BETWEEN 1 AND 5", name="level"),
        Index("ix_item_grant_workspace_id_user_id", "workspace_id", "user_id"),
    )

    workspace_id: Id = Field(primary_key=True)
    item_id: Id = Field(primary_key=True)
    user_id: Id = Field(primary_key=True)
    level: int
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


item_grant = table_of(ItemGrant)

"""The table of actions."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.actions.rules import ActionKind
from models.core.base import Id
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of


class Action(SQLModel, table=True):
    """An action; its label is the title of its item."""

    __tablename__ = "action"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id"),
        UniqueConstraint("workspace_id", "key"),
        same_workspace("item_id", "item.id"),
        one_of("kind", ActionKind),
        Index("ix_action_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id = Field(unique=True)
    key: str
    kind: str
    config: dict[str, Any] = Field(sa_type=JSONB)
    enabled: bool
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


action = table_of(Action)

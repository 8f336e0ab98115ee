"""The table of debounced changes; events and subscriptions are tables of messages.events."""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Index, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of


class DebouncedChange(SQLModel, table=True):
    """Changes of one record, merged into one for an automation with `debounceSeconds`.

    The run's id follows from `first_event_id`. `first_event` and `last_event` are the numbers of
    the oldest and the newest event in it. Nothing refers to the record, which may be deleted.
    """

    __tablename__ = "debounced_change"
    __table_args__ = (
        same_workspace("automation_id", "automation.id"),
        Index("ix_debounced_change_due_at", "due_at"),
    )

    automation_id: Id = Field(primary_key=True)
    record_id: Id = Field(primary_key=True)
    workspace_id: Id
    first_event_id: Id
    first_event: int = Field(sa_type=BigInteger)
    last_event: int = Field(sa_type=BigInteger)
    change: dict[str, Any] = Field(sa_type=JSONB)
    chain: list[Id] = Field(sa_type=ARRAY(Uuid), sa_column_kwargs={"server_default": text("'{}'")})
    attempts: int = 0
    due_at: datetime = Field(sa_type=Timestamp)


debounced_change = table_of(DebouncedChange)

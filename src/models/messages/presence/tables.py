"""The table of presence."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.schema import Timestamp, table_of


class Presence(SQLModel, table=True):
    """A user with connections to a workspace in one process, which says so every few seconds.

    The table is unlogged: after a crash the processes fill it again.
    """

    __tablename__ = "realtime_presence"
    __table_args__ = (
        Index("ix_realtime_presence_workspace_id", "workspace_id"),
        {"prefixes": ["UNLOGGED"]},
    )

    process_id: Id = Field(primary_key=True)
    workspace_id: Id = Field(primary_key=True)
    user_id: Id = Field(primary_key=True)
    seen_at: datetime = Field(sa_type=Timestamp)


presence = table_of(Presence)

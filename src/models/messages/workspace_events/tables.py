"""The table of the workspace log."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, table_of


class WorkspaceEvent(SQLModel, table=True):
    """One event, written by the transaction it tells of; triggers of the tables write most.

    `seq` is given by a trigger as the row is inserted, so a smaller one may be committed later:
    `log.heads` says up to where a log is whole (docs/adr/0046). With an `audience_user_id` only
    that user sees it, with an `item_id` who sees the item. It refers to nothing by a constraint:
    every writer would pay for the look.
    """

    __tablename__ = "workspace_event"
    __table_args__ = (Index("ix_workspace_event_workspace_id_seq", "workspace_id", "seq"),)

    seq: int = Field(
        sa_type=BigInteger, sa_column_kwargs={"server_default": text("0")}, primary_key=True
    )
    workspace_id: Id
    type: str
    at: datetime = Field(sa_type=Timestamp)
    actor_type: str
    actor_user_id: Id | None = None
    audience_user_id: Id | None = None
    item_id: Id | None = None
    data: dict[str, Any] = Field(sa_type=JSONB)


workspace_event = table_of(WorkspaceEvent)

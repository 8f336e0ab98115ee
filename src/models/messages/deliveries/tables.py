"""The table of deliveries."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.messages.deliveries.rules import (
    DELIVERY_LIFECYCLE,
    OPEN_DELIVERY,
    DeliveryChannel,
    DeliveryStatus,
)
from runtime.schema import Timestamp, listed, one_of, table_of

_OPEN = f"status IN ({listed(OPEN_DELIVERY)})"


class Delivery(SQLModel, table=True):
    """One thing on its way to one receiver.

    `input` is what the channel needs beside the two. `answer_status`, `error` and `error_code` are
    of the latest attempt; `next_attempt_at` is null while one is made.
    """

    __tablename__ = "delivery"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("channel", DeliveryChannel),
        one_of("status", DeliveryStatus),
        Index("ix_delivery_target_id", "workspace_id", "target_id", "created_at", "id"),
        Index("ix_delivery_completed_at", "completed_at"),
        Index(
            "ix_delivery_open_target_id",
            "target_id",
            postgresql_where=text(f"status IN ({listed(OPEN_DELIVERY)})"),
        ),
        Index(
            "ix_delivery_open", "id", postgresql_where=text(f"status IN ({listed(OPEN_DELIVERY)})")
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    channel: str
    subject_id: Id
    target_id: Id
    input: dict[str, Any] = Field(sa_type=JSONB)
    status: str
    attempts: int
    next_attempt_at: datetime | None = Field(default=None, sa_type=Timestamp)
    answer_status: int | None = None
    error: str | None = None
    error_code: str | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


delivery = table_of(Delivery)
DELIVERIES = WorkTable(delivery, DELIVERY_LIFECYCLE)

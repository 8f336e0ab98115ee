"""The tables of deliveries and of the lines they stand in, and deliveries as durable work."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, literal_column, text
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
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of
from runtime.temporal.families import Family

_OPEN = f"status IN ({listed(OPEN_DELIVERY)})"
_LINE = ("workspace_id", "channel", "target_id")


class Delivery(SQLModel, table=True):
    """One thing on its way to one receiver.

    `input` is what the channel needs beside the two. `answer_status`, `error` and `error_code` are
    of the latest attempt; `next_attempt_at` is null while one is made.

    One that is not `executing` waits as a row alone, in a line with the others for its target, the
    oldest first. `executions` counts the executions that were started for it.
    """

    __tablename__ = "delivery"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("channel", DeliveryChannel),
        one_of("status", DeliveryStatus),
        Index("ix_delivery_target_id", "workspace_id", "target_id", "created_at", "id"),
        Index(
            "ix_delivery_ended",
            *("workspace_id", "target_id", "status", "created_at", "id"),
            postgresql_where=text(f"status NOT IN ({listed(OPEN_DELIVERY)})"),
        ),
        Index("ix_delivery_completed_at", "completed_at"),
        Index("ix_delivery_created_at", "workspace_id", "channel", "created_at"),
        Index("ix_delivery_open_target_id", "target_id", postgresql_where=text(_OPEN)),
        Index("ix_delivery_open", "id", postgresql_where=text(_OPEN)),
        Index(
            "ix_delivery_waiting",
            *_LINE,
            "created_at",
            "id",
            postgresql_where=text(f"{_OPEN} AND NOT executing"),
        ),
        Index("ix_delivery_executing", *_LINE, postgresql_where=text(f"{_OPEN} AND executing")),
        Index(
            "ix_delivery_expires_at",
            "expires_at",
            postgresql_where=text(f"{_OPEN} AND NOT executing"),
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
    executing: bool = False
    executions: int = 0
    expires_at: datetime = Field(sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


class DeliveryLine(SQLModel, table=True):
    """The state of the receiver of a line, from its first answer on.

    `failures` are those in a row. `opened` and `retry_at` belong to its circuit, which is closed
    without them; `since` is when that last changed.
    """

    __tablename__ = "delivery_line"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("channel", DeliveryChannel),
    )

    workspace_id: Id = Field(primary_key=True)
    channel: str = Field(primary_key=True)
    target_id: Id = Field(primary_key=True)
    failures: int
    opened: int
    retry_at: datetime | None = Field(default=None, sa_type=Timestamp)
    since: datetime | None = Field(default=None, sa_type=Timestamp)
    succeeded_at: datetime | None = Field(default=None, sa_type=Timestamp)


delivery = table_of(Delivery)
delivery_line = table_of(DeliveryLine)

# Written out, for PostgreSQL must know them to be the conditions of the indexes.
_PENDING = delivery.c.status == literal_column(listed(OPEN_DELIVERY))
WAITING = _PENDING & ~delivery.c.executing
EXECUTING = _PENDING & delivery.c.executing

DELIVERIES = WorkTable(delivery, DELIVERY_LIFECYCLE, family=Family.DELIVERY)

"""The tables of places that are called, and of the calls that wait for them or are under way."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.repository import Bound
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of

_ONE_PLACE = "(host IS NULL) <> (connection_id IS NULL)"


class OutboundPlace(SQLModel, table=True):
    """A host or a connection, as one workspace calls it.

    Without `per_second` and `at_once` it has no limit, and is there for its `paused_until`, which
    an answer asked for, or for `paused_at`, from which on someone holds a connection up. From
    `resumed_at` on it lets its line go, `release_rate` calls a minute.

    `next_at` is the first moment that no call has been given yet, `free_at`
    the first at which another one may go, however late those before it went.
    """

    __tablename__ = "outbound_place"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        same_workspace("connection_id", "connection.id", ondelete="CASCADE"),
        sa.CheckConstraint(_ONE_PLACE, name="one_place"),
        partial_index(
            "uq_outbound_place_host", "workspace_id", "host", where="host IS NOT NULL", unique=True
        ),
        partial_index(
            "uq_outbound_place_connection_id",
            "workspace_id",
            "connection_id",
            where="connection_id IS NOT NULL",
            unique=True,
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    host: str | None = None
    connection_id: Id | None = None
    per_second: float | None = None
    at_once: int | None = None
    next_at: datetime | None = Field(default=None, sa_type=Timestamp)
    free_at: datetime | None = Field(default=None, sa_type=Timestamp)
    paused_until: datetime | None = Field(default=None, sa_type=Timestamp)
    paused_at: datetime | None = Field(default=None, sa_type=Timestamp)
    pause_reason: str | None = None
    paused_by_user_id: Id | None = None
    resumed_at: datetime | None = Field(default=None, sa_type=Timestamp)
    release_rate: int | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class OutboundCall(SQLModel, table=True):
    """A call of a place with a limit, from when it asks until it has ended.

    It waits until it has `go_at`, and is on its way once it has `gone`. `execution` is the workflow
    that comes back for it, by itself at `back_at`; None while its activity waits or calls. After
    `ends_at` no one answers for the row any more: its worker or its workflow is gone.
    """

    __tablename__ = "outbound_call"
    __table_args__ = (
        sa.ForeignKeyConstraint(["place_id"], ["outbound_place.id"], ondelete="CASCADE"),
        sa.Index("ix_outbound_call_line", "place_id", "position"),
        sa.Index("ix_outbound_call_work_id", "work_id"),
    )

    call_key: str = Field(primary_key=True)
    place_id: Id = Field(primary_key=True)
    workspace_id: Id
    work_id: Id
    position: int = Field(sa_type=sa.BigInteger, sa_column_args=[sa.Identity(always=True)])
    execution: str | None = None
    entered_at: datetime = Field(sa_type=Timestamp)
    go_at: datetime | None = Field(default=None, sa_type=Timestamp)
    gone: bool = False
    back_at: datetime | None = Field(default=None, sa_type=Timestamp)
    ends_at: datetime = Field(sa_type=Timestamp)


outbound_place = table_of(OutboundPlace)
outbound_call = table_of(OutboundCall)

LIMITED = sa.or_(outbound_place.c.per_second.is_not(None), outbound_place.c.at_once.is_not(None))
LIMITS = Bound(outbound_place, 100, "limits", conditions=(LIMITED,), remedy="Remove some first.")
"""A place that is only paused has no limit, and does not count."""

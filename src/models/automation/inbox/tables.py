"""The tables of events and their outcomes for automations, their retention and their bound.

Neither has a foreign key: rows outlive what they name, and never block what writes them. The
outcomes repeat the source and the moment of their event, so that one index finds the newest of an
automation.
"""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.inbox.rules import EventOutcome, EventSource
from models.core.base import Id
from models.core.purging import MAX_ROWS, Retention
from runtime.database import UnitOfWork
from runtime.postgresql.schema import BELONGS_TO, Timestamp, one_of, table_of


class InboxEvent(SQLModel, table=True):
    """An event that reached automations.

    `subject_id` is a database, form, data source or automation. `payload` is null when it was
    larger than is kept, `payload_bytes` is its size.
    """

    __tablename__ = "inbox_event"
    __table_args__ = (
        one_of("source", EventSource),
        sa.Index("ix_inbox_event_workspace_id_received_at_id", "workspace_id", "received_at", "id"),
        sa.Index("ix_inbox_event_received_at", "received_at"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    source: str
    subject_id: Id
    payload: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    payload_bytes: int
    received_at: datetime = Field(sa_type=Timestamp)


class InboxOutcome(SQLModel, table=True):
    """The outcome of an event for one automation; a replay has a row of its own."""

    __tablename__ = "inbox_outcome"
    __table_args__ = (
        one_of("source", EventSource),
        one_of("outcome", EventOutcome),
        sa.Index(
            "ix_inbox_outcome_automation_id",
            *("workspace_id", "automation_id", "received_at", "event_id"),
        ),
        sa.Index("ix_inbox_outcome_outcome", "workspace_id", "outcome", "received_at", "event_id"),
        sa.Index("ix_inbox_outcome_event_id", "workspace_id", "event_id"),
        sa.Index("ix_inbox_outcome_received_at", "received_at"),
        {"info": {BELONGS_TO: {"automation": ("workspace_id", "automation_id")}}},
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    event_id: Id
    automation_id: Id
    source: str
    outcome: str
    run_id: Id | None = None
    detail: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    replay: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})
    received_at: datetime = Field(sa_type=Timestamp)
    judged_at: datetime = Field(sa_type=Timestamp)


inbox_event = table_of(InboxEvent)
inbox_outcome = table_of(InboxOutcome)

_purge_outcomes = Retention(inbox_outcome, inbox_outcome.c.received_at)
_purge_events = Retention(inbox_event, inbox_event.c.received_at)

MAX_EVENTS = 100_000
"""Events that are kept of a workspace; the oldest go first."""
_EXAMINED = 200
"""Workspaces whose number of events one call compares with the bound."""


async def purge_inbox(work: UnitOfWork, before: datetime) -> int:
    """Remove events from before a moment, with their outcomes, and those over the bound."""
    return (
        await _purge_outcomes(work, before)
        or await _purge_events(work, before)
        or await _purge_overfull(work)
    )


async def _purge_overfull(work: UnitOfWork, most: int = MAX_EVENTS) -> int:
    """Remove the oldest events of workspaces that have more than `most`."""
    event = inbox_event.c
    full = await work.rows(
        sa.select(event.workspace_id, sa.func.count().label("events"))
        .group_by(event.workspace_id)
        .having(sa.func.count() > most)
        .order_by(sa.func.count().desc())
        .limit(_EXAMINED)
    )
    total = 0
    for row in full:
        oldest = (
            sa.select(event.received_at)
            .where(event.workspace_id == row.workspace_id)
            .order_by(event.received_at.desc(), event.id.desc())
            .offset(most)
            .limit(1)
        )
        last = await work.scalar(oldest)
        if last is None:
            continue
        for table in (inbox_outcome, inbox_event):
            old = (
                sa.select(table.c.id)
                .where(table.c.workspace_id == row.workspace_id, table.c.received_at <= last)
                .order_by(table.c.received_at)
                .limit(MAX_ROWS)
            )
            gone = await work.execute(sa.delete(table).where(table.c.id.in_(old)))
            total += gone.rowcount
        if total >= MAX_ROWS:
            break
    return total

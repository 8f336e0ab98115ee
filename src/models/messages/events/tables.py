"""Tables of events that wait for their dispatcher, and of who subscribes to which."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Identity,
    Index,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of


class TriggerEvent(SQLModel, table=True):
    """Something happened that automations may subscribe to; dispatching it deletes the row.

    `kind` is an `EventKind`. `subject_id` is what subscriptions name: a database, form, data source
    or automation. `chain` names the runs that led to it, oldest first. `due_at` lies in the future
    for an event that could not be dispatched yet.
    """

    __tablename__ = "trigger_event"
    __table_args__ = (
        UniqueConstraint("event_id"),
        Index("ix_trigger_event_workspace_id_id", "workspace_id", "id"),
    )

    id: int = Field(sa_type=BigInteger, sa_column_args=[Identity(always=True)], primary_key=True)
    event_id: Id
    workspace_id: Id
    kind: str
    subject_id: Id
    payload: dict[str, Any] = Field(sa_type=JSONB)
    chain: list[Id] = Field(sa_type=ARRAY(Uuid), sa_column_kwargs={"server_default": text("'{}'")})
    attempts: int = 0
    created_at: datetime = Field(sa_type=Timestamp)
    due_at: datetime = Field(sa_type=Timestamp)


class AutomationSubscription(SQLModel, table=True):
    """The subscription of an automation; no `subject_id` means any subject.

    Writers check it for subscribers; the automation itself decides whether a run may start. Events
    numbered up to `after_event` are older than the subscription. `include_system` includes changes
    that the platform makes by itself. `dormant` is the reason why no run starts, of an automation
    that is disabled, archived or unpublished: the inbox says so of each event. For an automation
    with a trigger on dates, dates up to `polled_until` have been answered, and the next poll is due
    at `next_poll_at`.
    """

    __tablename__ = "automation_subscription"
    __table_args__ = (
        same_workspace("automation_id", "automation.id"),
        Index("ix_automation_subscription_subject", "workspace_id", "kind", "subject_id"),
        partial_index(
            "ix_automation_subscription_next_poll_at",
            "next_poll_at",
            where="next_poll_at IS NOT NULL",
        ),
    )

    automation_id: Id = Field(primary_key=True)
    workspace_id: Id
    kind: str
    subject_id: Id | None = None
    dormant: str | None = None
    include_system: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    after_event: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": text("0")}
    )
    polled_until: datetime | None = Field(default=None, sa_type=Timestamp)
    next_poll_at: datetime | None = Field(default=None, sa_type=Timestamp)


trigger_event = table_of(TriggerEvent)
automation_subscription = table_of(AutomationSubscription)

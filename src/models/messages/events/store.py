"""Events that wait for their dispatcher: tables, emitted with the change, and who subscribes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.core.base import Id, JsonObject
from models.messages.events.rules import ANSWERED_BY, RECORD_SUBSCRIPTIONS, EventKind
from runtime.database import UnitOfWork, Work
from runtime.derived_ids import derived_id
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement


class TriggerEvent(SQLModel, table=True):
    """Something happened that automations may subscribe to; dispatching it deletes the row.

    `kind` is an `EventKind`. `subject_id` is what subscriptions name: a database, form, data source
    or automation. `chain` names the runs that led to it, oldest first. `due_at` lies in the future
    for an event that could not be dispatched yet.
    """

    __tablename__ = "trigger_event"
    __table_args__ = (
        sa.UniqueConstraint("event_id"),
        sa.Index("ix_trigger_event_workspace_id_id", "workspace_id", "id"),
    )

    id: int = Field(
        sa_type=sa.BigInteger, sa_column_args=[sa.Identity(always=True)], primary_key=True
    )
    event_id: Id
    workspace_id: Id
    kind: str
    subject_id: Id
    payload: dict[str, Any] = Field(sa_type=JSONB)
    chain: list[Id] = Field(
        sa_type=sa.ARRAY(sa.Uuid), sa_column_kwargs={"server_default": sa.text("'{}'")}
    )
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
        sa.Index("ix_automation_subscription_subject", "workspace_id", "kind", "subject_id"),
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
    include_system: bool = Field(
        default=False, sa_column_kwargs={"server_default": sa.text("false")}
    )
    after_event: int = Field(
        default=0, sa_type=sa.BigInteger, sa_column_kwargs={"server_default": sa.text("0")}
    )
    polled_until: datetime | None = Field(default=None, sa_type=Timestamp)
    next_poll_at: datetime | None = Field(default=None, sa_type=Timestamp)


trigger_event = table_of(TriggerEvent)
automation_subscription = table_of(AutomationSubscription)


_subscription = automation_subscription.c


class _Subscribers(Protocol):
    """Of all subscriptions to a database: None without any, else whether one takes all changes."""

    include_system: bool | None


_RECORD_SUBSCRIBERS = PreparedStatement(
    sa.select(sa.func.bool_or(_subscription.include_system).label("include_system")).where(
        _subscription.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _subscription.kind
        == sa.func.any(sa.literal(list(RECORD_SUBSCRIPTIONS), sa.ARRAY(sa.Text))),
        _subscription.subject_id == sa.bindparam("database_id", type_=sa.Uuid),
    ),
    _Subscribers,
)


async def has_record_subscriber(
    work: Work, workspace_id: Id, database_id: Id, *, system: bool
) -> bool:
    """True when any automation subscribes to changes of a database's records.

    `system` asks for automations that also take what the platform writes by itself.
    """
    parameters = {"workspace_id": workspace_id, "database_id": database_id}
    (found,) = await _RECORD_SUBSCRIBERS.rows(work, parameters)
    return found.include_system is not None and (found.include_system or not system)


def waiting_events() -> sa.Select[Any]:
    """The number of events that wait for the dispatcher, and the moment of the oldest of them."""
    oldest: sa.ColumnElement[Any] = sa.func.min(trigger_event.c.created_at).label("oldest")
    waiting: sa.ColumnElement[Any] = sa.func.count().label("waiting")
    return sa.select(waiting, oldest)


_ROWS = (
    sa.func.jsonb_to_recordset(sa.cast(sa.bindparam("rows", type_=sa.Text), JSONB))
    .table_valued(sa.column("event_id", sa.Uuid), sa.column("payload", JSONB))
    .render_derived(name="entry", with_types=True)
)
_NOW = sa.bindparam("now", type_=Timestamp)
_EVENT = {
    "event_id": _ROWS.c.event_id,
    "workspace_id": sa.bindparam("workspace_id", type_=sa.Uuid),
    "kind": sa.literal(EventKind.RECORD_CHANGED.value, sa.Text),
    "subject_id": sa.bindparam("database_id", type_=sa.Uuid),
    "payload": _ROWS.c.payload,
    "chain": sa.bindparam("chain", type_=sa.ARRAY(sa.Uuid)),
    "attempts": sa.literal_column("0"),
    "created_at": _NOW,
    "due_at": _NOW,
}

# Event ids were made in the order of the writes, and so they are numbered.
_EMIT_CHANGES = PreparedStatement(
    sa.insert(trigger_event).from_select(
        list(_EVENT), sa.select(*_EVENT.values()).order_by(_ROWS.c.event_id)
    )
)


async def emit(
    work: UnitOfWork,
    workspace_id: Id,
    kind: EventKind,
    subject_id: Id,
    payload: JsonObject,
    *,
    chain: Sequence[Id] = (),
    event_id: Id | None = None,
    answered_by: Sequence[Id] = (),
) -> None:
    """Keep an event for the dispatcher if any automation subscribes to its kind and subject.

    `payload` becomes the trigger payload of every run (interface.md#triggers). An `event_id`
    derived from what happened makes a repeated emission harmless. The automations in `answered_by`
    have been started for what happened in another way; the dispatcher starts none of them again.
    """
    if answered_by:
        payload = {**payload, ANSWERED_BY: [str(one) for one in answered_by]}
    event = {
        "event_id": event_id or new_id(),
        "workspace_id": workspace_id,
        "kind": kind.value,
        "subject_id": subject_id,
        "payload": payload,
        "chain": list(chain),
        "attempts": 0,
        "created_at": work.now,
        "due_at": work.now,
    }
    values = [sa.literal(value, trigger_event.c[name].type) for name, value in event.items()]
    row = sa.select(*values).where(_has_subscriber(workspace_id, kind, subject_id))
    kept = await work.execute(
        upsert(trigger_event)
        .from_select(list(event), row)
        .on_conflict_do_nothing(index_elements=["event_id"])
    )
    if kept.rowcount:
        work.notify_workers = True


def _has_subscriber(workspace_id: Id, kind: EventKind, subject_id: Id) -> sa.ColumnElement[bool]:
    subscription = automation_subscription.c
    return (
        sa.select(sa.literal(1))
        .where(
            subscription.workspace_id == workspace_id,
            subscription.kind == kind,
            sa.or_(subscription.subject_id == subject_id, subscription.subject_id.is_(None)),
        )
        .exists()
    )


async def emit_record_changes(
    work: UnitOfWork,
    workspace_id: Id,
    database_id: Id,
    changes: Sequence[JsonObject],
    chain: Sequence[Id],
) -> None:
    """Keep an event for each of these changes; the caller has checked for subscribers."""
    rows = [{"event_id": new_id(), "payload": change} for change in changes]
    parameters = {
        "workspace_id": workspace_id,
        "database_id": database_id,
        "chain": list(chain),
        "now": work.now,
        "rows": to_json(rows).decode(),
    }
    await _EMIT_CHANGES.execute(work, parameters)
    work.notify_workers = True


async def data_source_finished(
    work: UnitOfWork,
    workspace_id: Id,
    data_source_id: Id,
    run: JsonObject,
    chain: Sequence[Id] = (),
) -> None:
    """A refresh has ended; `run` shows it, with its `id` and its `status`.

    `chain` are the runs of automations that led to it, oldest first.
    """
    kind = EventKind.DATA_SOURCE_FINISHED
    event_id = derived_id(kind, run["id"])
    payload = {"run": run}
    await emit(work, workspace_id, kind, data_source_id, payload, chain=chain, event_id=event_id)


async def time_entry_completed(
    work: UnitOfWork, workspace_id: Id, entry: JsonObject, database_id: Id | None = None
) -> None:
    """A time entry was completed; `entry` shows it, `database_id` holds the record it is for."""
    kind = EventKind.TIME_ENTRY_COMPLETED
    shown = {**entry, "databaseId": None if database_id is None else str(database_id)}
    entry_id = Id(entry["id"])
    event_id = derived_id(kind, entry_id)
    await emit(work, workspace_id, kind, entry_id, {"entry": shown}, event_id=event_id)

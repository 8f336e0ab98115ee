"""Subscribers to an event that may run now, the start of their runs, and debounced changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.automation_runs.acceptance import MAX_CHAIN, RunRequest, accept, is_too_long
from models.automation.automation_runs.rules import RunSource
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations import runnable_versions
from models.automation.automations.queries import authors_of, item_of_automation
from models.automation.automations.references import payload_type
from models.automation.automations.rules.triggers import kinds as trigger_kinds
from models.automation.inbox.rules import EventOutcome, Judgement, loop
from models.core.base import Id, JsonObject
from models.core.expressions.rules.typed_reads import with_keys
from models.core.references.rules import Subject
from models.data.fields.rows import find_fields
from models.data.fields.rules.fields import FieldSpecs
from models.messages.events import store as event_store
from models.messages.events.rules import EventKind
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import ConflictError
from runtime.postgresql.schema import Timestamp, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement


class DebouncedChange(SQLModel, table=True):
    """Changes of one record, merged into one for an automation with `debounceSeconds`.

    The run's id follows from `first_event_id`. `first_event` and `last_event` are the numbers of
    the oldest and the newest event in it. Nothing refers to the record, which may be deleted.
    """

    __tablename__ = "debounced_change"
    __table_args__ = (
        same_workspace("automation_id", "automation.id"),
        sa.Index("ix_debounced_change_due_at", "due_at"),
    )

    automation_id: Id = Field(primary_key=True)
    record_id: Id = Field(primary_key=True)
    workspace_id: Id
    first_event_id: Id
    first_event: int = Field(sa_type=sa.BigInteger)
    last_event: int = Field(sa_type=sa.BigInteger)
    change: dict[str, Any] = Field(sa_type=JSONB)
    chain: list[Id] = Field(
        sa_type=sa.ARRAY(sa.Uuid), sa_column_kwargs={"server_default": sa.text("'{}'")}
    )
    attempts: int = 0
    due_at: datetime = Field(sa_type=Timestamp)


debounced_change = table_of(DebouncedChange)

MOST_QUEUED = 1_000
"""Changes in the queue of a database that a rename gives the new key."""


class ManyQueuedError(ConflictError):
    """Many changes of a database have not been answered yet."""

    advice = "Try again when the automations have answered them."

    def __init__(self) -> None:
        super().__init__(f"More than {MOST_QUEUED:,} changes of records wait for automations.")


async def rename_in_queue(work: UnitOfWork, subject: Subject, workspace_id: Id, key: str) -> None:
    """Give events and debounced changes of a database the new key of a field.

    They are locked before any automation, as who dispatches them does. Raises ManyQueuedError.
    """
    types = payload_type(subject.id)
    events = event_store.trigger_event
    for table, column in (
        (events, events.c.payload),
        (debounced_change, debounced_change.c.change),
    ):
        places = list(table.primary_key.columns)
        of_database = (
            table.c.workspace_id == workspace_id,
            column["record"]["databaseId"].astext == subject.id,
        )
        queued = await work.rows(
            sa.select(*places, column.label("queued"))
            .where(*of_database)
            .order_by(*places)
            .limit(MOST_QUEUED + 1)
            .with_for_update()
        )
        if len(queued) > MOST_QUEUED:
            raise ManyQueuedError
        for row in queued:
            this = (one == row._mapping[one.name] for one in places)
            renamed = with_keys(row.queued, types, subject.id, {subject.key: key})
            await work.execute(sa.update(table).where(*this).values({column: renamed}))


@dataclass(frozen=True, slots=True)
class Subscriber:
    """An automation that may run, with its live version."""

    workspace_id: Id
    version: runnable_versions.RunnableVersion
    fields: FieldSpecs
    """The fields of its database, when it filters the changes of records."""
    dormant: EventOutcome | None = None
    """The reason why it starts no run, of an automation that may not run."""

    @property
    def automation_id(self) -> Id:
        return self.version.automation_id

    @property
    def config(self) -> JsonObject:
        """The trigger config of the live version."""
        return self.version.trigger_config

    @property
    def kind(self) -> trigger_kinds.TriggerKind:
        return trigger_kinds.TriggerKind(self.config["kind"])

    @property
    def debounces(self) -> bool:
        """True when changes of a record are merged for `debounceSeconds` before a run starts."""
        return bool(self.config.get("debounceSeconds"))


class Subscription(Protocol):
    """The names in a subscription: an automation, and the events it is for."""

    @property
    def automation_id(self) -> Id: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def subject_id(self) -> Id | None: ...


_table = event_store.automation_subscription.c
_SUBSCRIBED = PreparedStatement(
    sa.select(event_store.automation_subscription)
    .where(
        _table.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _table.kind == sa.func.any(sa.bindparam("kinds", type_=sa.ARRAY(sa.Text))),
        sa.or_(
            _table.subject_id == sa.bindparam("subject_id", type_=sa.Uuid),
            _table.subject_id.is_(None),
        ),
    )
    .order_by(_table.automation_id),
    event_store.AutomationSubscription,
)
_NAMED = PreparedStatement(
    sa.select(event_store.automation_subscription).where(
        _table.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _table.automation_id == sa.bindparam("subject_id", type_=sa.Uuid),
        _table.kind == trigger_kinds.TriggerKind.RECORD_DATE_REACHED.value,
    ),
    event_store.AutomationSubscription,
)


class SubscriberCache:
    """The subscribers to the events of one batch. Each question is asked once."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._subscriptions: dict[
            tuple[Id, str, Id], Sequence[event_store.AutomationSubscription]
        ] = {}
        self._subscribers: dict[Id, Subscriber | None] = {}

    async def subscribers_of(self, event: event_store.TriggerEvent) -> list[Subscriber]:
        """The automations that subscribe to an event, dormant ones included.

        Each that is not dormant was published and enabled when the event was emitted, and is now.
        """
        found = [
            await self._subscriber(row, event.workspace_id)
            for row in await self._rows(event)
            if row.after_event < event.id
        ]
        return [one for one in found if one is not None]

    async def _rows(
        self, event: event_store.TriggerEvent
    ) -> Sequence[event_store.AutomationSubscription]:
        key = (event.workspace_id, event.kind, event.subject_id)
        if key not in self._subscriptions:
            self._subscriptions[key] = await _subscriptions(self._work, event)
        return self._subscriptions[key]

    async def _subscriber(
        self, row: event_store.AutomationSubscription, workspace_id: Id
    ) -> Subscriber | None:
        if row.automation_id not in self._subscribers:
            found = await _load_any(self._work, row, workspace_id)
            self._subscribers[row.automation_id] = found
        return self._subscribers[row.automation_id]


async def _subscriptions(
    work: UnitOfWork, event: event_store.TriggerEvent
) -> Sequence[event_store.AutomationSubscription]:
    parameters = {"workspace_id": event.workspace_id, "subject_id": event.subject_id}
    if event.kind == EventKind.RECORD_DATE_REACHED:
        return await _NAMED.rows(work, parameters)
    changed = event.kind == EventKind.RECORD_CHANGED
    kinds = list(trigger_kinds.RECORD_TRIGGERS) if changed else [event.kind]
    return await _SUBSCRIBED.rows(work, {**parameters, "kinds": kinds})


async def load_subscriber(
    work: UnitOfWork, subscription: Subscription, workspace_id: Id
) -> Subscriber | None:
    """The automation of a subscription; None unless it may run and still subscribes to the same."""
    version = await runnable_versions.live(work, workspace_id, subscription.automation_id)
    if version is None:
        return None
    return await _subscriber_of(work, subscription, workspace_id, version)


async def _load_any(
    work: UnitOfWork, subscription: event_store.AutomationSubscription, workspace_id: Id
) -> Subscriber | None:
    """As `load_subscriber`, or one that may not run, with the reason."""
    this = workspace_id, subscription.automation_id
    if subscription.dormant is None:
        found = await load_subscriber(work, subscription, workspace_id)
        if found is not None:
            return found
    version, reason = await runnable_versions.dormant(work, *this)
    if version is None or reason is None:
        return None
    dormant = EventOutcome(reason)
    return await _subscriber_of(work, subscription, workspace_id, version, dormant)


async def _subscriber_of(
    work: UnitOfWork,
    subscription: Subscription,
    workspace_id: Id,
    version: runnable_versions.RunnableVersion,
    dormant: EventOutcome | None = None,
) -> Subscriber | None:
    config = version.trigger_config
    if (config["kind"], trigger_kinds.subject_of(config)) != (
        subscription.kind,
        subscription.subject_id,
    ):
        return None
    return Subscriber(workspace_id, version, await _fields(work, workspace_id, config), dormant)


async def _fields(work: UnitOfWork, workspace_id: Id, config: JsonObject) -> FieldSpecs:
    if config["kind"] not in trigger_kinds.RECORD_TRIGGERS or not isinstance(
        config.get("filter"), dict
    ):
        return {}
    database_id = trigger_kinds.subject_of(config)
    assert database_id is not None, "a record trigger names its database"
    return await find_fields(work, workspace_id, database_id)


log = structlog.get_logger()

RUN_SOURCES: Mapping[trigger_kinds.TriggerKind, RunSource] = {
    **dict.fromkeys(trigger_kinds.RECORD_TRIGGERS, RunSource.RECORD),
    trigger_kinds.TriggerKind.FORM_SUBMITTED: RunSource.FORM,
    trigger_kinds.TriggerKind.BUTTON_PRESSED: RunSource.BUTTON,
    trigger_kinds.TriggerKind.DATA_SOURCE_FINISHED: RunSource.DATA_SOURCE,
    trigger_kinds.TriggerKind.AUTOMATION_FAILED: RunSource.FAILURE,
    trigger_kinds.TriggerKind.TIME_ENTRY_COMPLETED: RunSource.TIME_ENTRY,
}
"""The source of the runs that each trigger starts, for the triggers that subscribe to events."""

MAX_NOTIFIED = 20
"""People who are notified about one automation."""


async def start_run(
    work: UnitOfWork, subscriber: Subscriber, payload: JsonObject, chain: list[Id], *names: object
) -> Judgement:
    """Accept a run whose id follows from `names`; repeating this changes nothing.

    A chain of runs that is too long ends here, with a notification (interface.md#chains-of-runs).
    """
    if is_too_long(chain):
        await _notify_loop(work, subscriber)
        return loop(chain)
    request = RunRequest(
        RUN_SOURCES[subscriber.kind],
        payload,
        run_id=derived_id(subscriber.automation_id, *names),
        chain=tuple(chain),
    )
    actor = automation_actor(subscriber.workspace_id, subscriber.automation_id)
    accepted = await accept(work, actor, subscriber.version, request)
    return accepted.judgement


async def _notify_loop(work: UnitOfWork, subscriber: Subscriber) -> None:
    log.warning("a chain of runs ended", automation_id=str(subscriber.automation_id))
    body = (
        f"Runs started each other {MAX_CHAIN} times; the last one was not started. Narrow the"
        " trigger, or don't write values that are already set."
    )
    hour = f"{work.now:%Y-%m-%dT%H}"
    await _notify_authors(
        work, subscriber, NotificationKind.AUTOMATION_LOOP, "starts itself", body, hour
    )


async def notify_filter_failed(work: UnitOfWork, subscriber: Subscriber, reason: str) -> None:
    """Notify that the filter of a trigger could not be evaluated, at most once a day."""
    log.warning("a trigger's filter failed", automation_id=str(subscriber.automation_id))
    body = f"A change was ignored because the trigger's filter failed: {reason}"
    day = f"{work.now:%Y-%m-%d}"
    await _notify_authors(
        work, subscriber, NotificationKind.AUTOMATION_FAILED, "ignored a change", body, day
    )


async def _notify_authors(
    work: UnitOfWork,
    subscriber: Subscriber,
    kind: NotificationKind,
    predicate: str,
    body: str,
    period: str,
) -> None:
    """Notify the authors of the automation's versions, at most once a period."""
    this = subscriber.workspace_id, subscriber.automation_id
    authors = await authors_of(work, *this, MAX_NOTIFIED)
    item_id = await item_of_automation(work, *this)
    notice = Notice(
        kind=kind,
        title=f"“{subscriber.version.label}” {predicate}",
        body=body,
        item_id=item_id,
        data={"automationId": str(subscriber.automation_id)},
        key=f"{kind}/{subscriber.automation_id}/{period}",
    )
    await notify(work, subscriber.workspace_id, authors, notice)

"""Dates in records: polled for, and the runs that start when one is reached.

Nothing is stored per record. A subscription holds the moment up to which dates have been polled
(`polled_until`) and when the next poll is due (`next_poll_at`). The dispatcher calls `poll_dates`
regularly. A poll is one transaction for one subscription: it finds the records whose date lies
between, and emits an event for each, so that many dates of one day take turns with all other
events. `start_run_for_date` answers the event.

A poll misses two cases, which `start_runs_for_moved_date` finds in the events of changes: a date
that was set to a moment polled already, and a date that was moved after it was reached. The id of a
run follows from the record and the date, so that no date starts two runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automation_runs.queries import RUN, run_of
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations.rules.triggers.kinds import subject_of
from models.automation.inbox.rules import EventOutcome, Judgement
from models.automation.triggers.rules import LONGEST_WINDOW, DateWatch
from models.automation.triggers.subscribers import Subscriber, load_subscriber, start_run
from models.core.base import Id, JsonObject
from models.core.filters.operands import Condition, Range
from models.data.fields.queries import load_schema
from models.data.fields.rows import field_kind
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.records.details import record_details
from models.data.records.events import any_automation
from models.data.records.queries import find_record
from models.data.records.rows import last_change
from models.data.records.rules.query.filters import Leaf
from models.data.records.rules.query.ordering import NEWEST_FIRST
from models.data.records.rules.query.plan import Query
from models.data.records.rules.query.routes import Route, candidates, matching
from models.data.records.rules.query.sql import extract
from models.data.records.side_index import request_indexes
from models.data.records.tables import record
from models.messages.events.rules import EventKind
from models.messages.events.store import TriggerEvent, automation_subscription, trigger_event
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement

log = structlog.get_logger()

HORIZON = timedelta(minutes=1)
"""The longest time between two polls. Changes without an event are found by the next poll."""
SOON = timedelta(milliseconds=200)
"""The time to the next poll while events wait that may have moved dates."""


class _PolledSubscription(Protocol):
    """The subscription of a `record_date_reached` trigger."""

    automation_id: Id
    workspace_id: Id
    kind: str
    subject_id: Id
    polled_until: datetime


_table = automation_subscription.c
_NEXT = PreparedStatement(
    sa.select(automation_subscription)
    .where(_table.next_poll_at <= sa.bindparam("now", type_=Timestamp))
    .order_by(_table.next_poll_at)
    .limit(1)
    # Another process polls a locked subscription at this moment.
    .with_for_update(key_share=True, skip_locked=True),
    _PolledSubscription,
)
_OLDEST_EVENT = PreparedStatement(
    sa.select(sa.func.min(trigger_event.c.created_at).label("oldest")).where(
        trigger_event.c.workspace_id == sa.bindparam("workspace_id"),
        trigger_event.c.kind == EventKind.RECORD_CHANGED.value,
        trigger_event.c.subject_id == sa.bindparam("subject_id"),
        trigger_event.c.attempts == 0,
    )
)
_POLLED = PreparedStatement(
    sa.update(automation_subscription)
    .where(_table.automation_id == sa.bindparam("automation"))
    .values(
        polled_until=sa.bindparam("until", type_=Timestamp),
        next_poll_at=sa.bindparam("next_poll", type_=Timestamp),
    )
)


class _OvertakenError(Exception):
    """A change was committed during the poll. It may have moved a date that the poll missed."""

    retryable = True


async def poll_dates(work: UnitOfWork) -> bool:
    """Do one poll that is due. Returns False when none is."""
    subscription = await _NEXT.first(work, {"now": work.now})
    if subscription is None:
        return False
    polled_until, next_poll = work.now, work.now + HORIZON
    until = await _events_dispatched_until(work, subscription)
    watched = await _watched_field(work, subscription)
    # Dates that are reached while the automation or its database is in the trash start no run.
    if watched is not None:
        try:
            async with work.savepoint():
                next_poll = await _poll(work, subscription, watched, until)
            polled_until = max(until, subscription.polled_until)
        except _OvertakenError:
            polled_until, next_poll = subscription.polled_until, work.now + SOON
        except Exception:
            # A failure of one automation must not keep the others from being polled.
            log.exception("a poll failed", automation_id=str(subscription.automation_id))
            polled_until = subscription.polled_until
    automation = subscription.automation_id
    parameters = {"automation": automation, "until": polled_until, "next_poll": next_poll}
    await _POLLED.execute(work, parameters)
    return True


async def _events_dispatched_until(work: UnitOfWork, subscription: _PolledSubscription) -> datetime:
    """The moment up to which no change of the database's records waits to be dispatched."""
    named = {"workspace_id": subscription.workspace_id, "subject_id": subscription.subject_id}
    (waiting,) = await _OLDEST_EVENT.rows(work, named)
    if waiting.oldest is None:
        return work.now
    oldest: datetime = waiting.oldest
    return min(work.now, oldest - timedelta(milliseconds=1))


@dataclass(frozen=True, slots=True)
class _WatchedField:
    """The field that holds the dates of a trigger."""

    schema: Schema
    spec: FieldSpec
    watch: DateWatch

    def conditions(self, test: Condition) -> Sequence[sa.ColumnElement[Any]]:
        """The conditions of the records whose date passes a test, through the side index."""
        query = self.query(test)
        route = Route()
        if self.spec.index_ready:
            route = Route(among=next(iter(candidates(self.schema, query)), None))
        return matching(self.schema, query, route)

    def query(self, test: Condition) -> Query:
        return Query(
            required=(Leaf(self.spec, test),),
            further=(),
            with_archived=False,
            order=NEWEST_FIRST,
            levels=(),
            figures=(),
            shown_fields={},
        )


async def _watched_field(
    work: UnitOfWork, subscription: _PolledSubscription
) -> _WatchedField | None:
    subscriber = await load_subscriber(work, subscription, subscription.workspace_id)
    if subscriber is None:
        return None
    try:
        schema = await load_schema(work, subscription.workspace_id, subscription.subject_id)
    except NotFoundError:
        return None
    spec = schema.fields.get(subscriber.config["fieldKey"])
    watch = DateWatch.of(subscriber.config, None if spec is None else spec.kind)
    if spec is None or watch is None:
        return None
    return _WatchedField(schema, spec, watch)


async def _poll(
    work: UnitOfWork, subscription: _PolledSubscription, field: _WatchedField, until: datetime
) -> datetime:
    """Emit the dates reached since the last poll. Returns when the next poll is due.

    Raises _OvertakenError.
    """
    after = max(subscription.polled_until, until - LONGEST_WINDOW)
    await _request_index(work, subscription, field)
    test = _between(field.watch, after, until)
    if test is not None and after < until:
        await _emit(work, subscription, field, test)
    if await _events_dispatched_until(work, subscription) < until:
        raise _OvertakenError
    if until < work.now:
        return work.now + SOON
    if field.watch.whole_days:
        return field.watch.next_day(until) or work.now + HORIZON
    return await _next_moment(work, field, until)


def _between(watch: DateWatch, after: datetime, until: datetime) -> Condition | None:
    """The test that values pass which are due after one moment and until another."""
    if not watch.whole_days:
        return Range(after - watch.offset, until - watch.offset, with_low=False)
    days = watch.days(after, until)
    return Range(days[0].isoformat(), days[-1].isoformat()) if days else None


async def _request_index(
    work: UnitOfWork, subscription: _PolledSubscription, field: _WatchedField
) -> None:
    """Request an index of the field, if its database is large and it has none."""
    if field.spec.index_id is None:
        actor = automation_actor(subscription.workspace_id, subscription.automation_id)
        day = (
            subscription.polled_until.date().isoformat()
            if field.watch.whole_days
            else subscription.polled_until
        )
        await request_indexes(work, actor, field.schema, field.query(Range(low=day)))


async def _emit(
    work: UnitOfWork, subscription: _PolledSubscription, field: _WatchedField, test: Condition
) -> None:
    value = extract(field.spec).expression
    payload = sa.func.jsonb_build_object("recordId", record.c.id, "value", value, type_=JSONB)
    event = {
        "event_id": sa.func.uuidv7(),
        "workspace_id": sa.literal(subscription.workspace_id),
        "kind": sa.literal(EventKind.RECORD_DATE_REACHED.value),
        "subject_id": sa.literal(subscription.automation_id),
        "payload": payload,
        "chain": sa.literal([], trigger_event.c.chain.type),
        "attempts": sa.literal(0),
        "created_at": sa.literal(work.now, Timestamp),
        "due_at": sa.literal(work.now, Timestamp),
    }
    reached = sa.select(*event.values()).where(*field.conditions(test)).order_by(value, record.c.id)
    emitted = await work.execute(sa.insert(trigger_event).from_select(list(event), reached))
    if emitted.rowcount:
        work.notify_workers = True


async def _next_moment(work: UnitOfWork, field: _WatchedField, until: datetime) -> datetime:
    """The time the first date within the horizon is due; without one, the end of the horizon."""
    horizon = until + HORIZON
    test = _between(field.watch, until, horizon)
    assert test is not None, "moments have no days without any"
    first = sa.func.min(extract(field.spec).expression)
    value = await work.scalar(sa.select(first).where(*field.conditions(test)))
    due = field.watch.due(value.isoformat() if isinstance(value, datetime) else value)
    return horizon if due is None else due


SHORTLY = timedelta(minutes=1)
"""A run leads to the run of a date that it sets at most this far ahead."""

_LOCK = PreparedStatement(
    sa.select(_table.polled_until)
    .where(
        _table.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        _table.automation_id == sa.bindparam("automation_id", type_=sa.Uuid),
    )
    .with_for_update(key_share=True)
)
_POLL_BY = PreparedStatement(
    sa.update(automation_subscription)
    .where(
        _table.automation_id == sa.bindparam("automation", type_=sa.Uuid),
        _table.next_poll_at > sa.bindparam("due", type_=Timestamp),
    )
    .values(next_poll_at=sa.bindparam("due", type_=Timestamp))
)


async def start_runs_for_moved_date(
    work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber
) -> Judgement | None:
    """Start the runs of dates in a change that polls miss, and have a new date polled in time.

    The subscription is locked, so that no poll runs meanwhile.
    """
    key = {"workspace_id": event.workspace_id, "automation_id": subscriber.automation_id}
    subscription = await _LOCK.first(work, key)
    watch = await _watch_of(work, subscriber, event.subject_id)
    if subscription is None or watch is None:
        return None
    change, judgement = event.payload, None
    was = watch.due_of(change["before"])
    due = None if change["gone"] else watch.due_of(change["record"])
    if was == due:
        return None
    if was is not None and subscription.polled_until < was <= event.created_at:
        judgement = await _start_run(work, subscriber, change["before"], was, event.chain)
    if due is None:
        return judgement
    if due > subscription.polled_until:
        await _POLL_BY.execute(work, {"automation": subscriber.automation_id, "due": due})
    elif due >= event.created_at:
        return await _start_run(work, subscriber, change["record"], due, event.chain)
    return judgement


async def start_run_for_date(
    work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber
) -> Judgement:
    """Start the run of a date that a poll found, unless the record has been deleted since."""
    no_date = Judgement(EventOutcome.FILTERED, detail={"term": "The record still has the date."})
    record_id = Id(event.payload["recordId"])
    row = await find_record(work, event.workspace_id, record_id)
    if row is None or subject_of(subscriber.config) != row.database_id:
        return no_date
    watch = await _watch_of(work, subscriber, row.database_id)
    due = None if watch is None else watch.due(event.payload["value"])
    try:
        schema = await load_schema(work, event.workspace_id, row.database_id)
    except NotFoundError:
        return no_date
    if due is None:
        return no_date
    (detail,) = await record_details(work, any_automation(event.workspace_id), schema, [row])
    chain = await _chain_of(work, event, record_id, due)
    return await _start_run(work, subscriber, detail.to_json(), due, chain)


async def _start_run(
    work: UnitOfWork, subscriber: Subscriber, shown: JsonObject, due: datetime, chain: list[Id]
) -> Judgement:
    payload = {"record": shown, "dueAt": wire_timestamp(due)}
    return await start_run(work, subscriber, payload, chain, shown["id"], payload["dueAt"])


async def _watch_of(work: UnitOfWork, subscriber: Subscriber, database_id: Id) -> DateWatch | None:
    """The watch of the trigger; None when the field is gone, or holds no dates any more."""
    field_key = subscriber.config["fieldKey"]
    kind = await field_kind(work, subscriber.workspace_id, database_id, field_key)
    return DateWatch.of(subscriber.config, kind)


async def _chain_of(
    work: UnitOfWork, event: TriggerEvent, record_id: Id, due: datetime
) -> list[Id]:
    """The runs that led to a date by the record's last change, if it came shortly before."""
    last = last_change(event.workspace_id, record_id).subquery("last")
    run = await work.first(
        sa.select(RUN.id, RUN.chain)
        .select_from(last)
        .join(*run_of(last.c.run_id))
        .where(RUN.workspace_id == event.workspace_id, last.c.at > due - SHORTLY)
    )
    return [] if run is None else [*run.chain, run.id]

"""Polling for dates in records that have been reached (`record_date_reached`).

A poll is one transaction for one subscription. Each date it finds becomes an event, so that many
dates of one day take turns with all other events. The dispatcher calls `poll_dates` regularly;
`reached_dates` explains what polls do not find.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog
from sqlalchemy import ColumnElement, bindparam, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automation_runs.run_header import automation_actor
from models.automation.triggers.rules.due_dates import LONGEST_WINDOW, DateWatch
from models.automation.triggers.subscribers import load_subscriber
from models.core.base import Id
from models.core.filters.conditions import Condition, Range
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.records.commands.index import request_indexes
from models.data.records.rules.query.extraction import extract
from models.data.records.rules.query.filters import Leaf
from models.data.records.rules.query.ordering import NEWEST_FIRST
from models.data.records.rules.query.query import Query
from models.data.records.rules.query.routes import Route, candidates, matching
from models.data.records.tables import record
from models.messages.events.rules import EventKind
from models.messages.events.tables import automation_subscription, trigger_event
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp

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
    select(automation_subscription)
    .where(_table.next_poll_at <= bindparam("now", type_=Timestamp))
    .order_by(_table.next_poll_at)
    .limit(1)
    .with_for_update(key_share=True, skip_locked=True),
    _PolledSubscription,
)
_OLDEST_EVENT = PreparedStatement(
    select(func.min(trigger_event.c.created_at).label("oldest")).where(
        trigger_event.c.workspace_id == bindparam("workspace_id"),
        trigger_event.c.kind == EventKind.RECORD_CHANGED.value,
        trigger_event.c.subject_id == bindparam("subject_id"),
        trigger_event.c.attempts == 0,
    )
)
_POLLED = PreparedStatement(
    update(automation_subscription)
    .where(_table.automation_id == bindparam("automation"))
    .values(
        polled_until=bindparam("until", type_=Timestamp),
        next_poll_at=bindparam("next_poll", type_=Timestamp),
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

    def conditions(self, test: Condition) -> Sequence[ColumnElement[Any]]:
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
    payload = func.jsonb_build_object("recordId", record.c.id, "value", value, type_=JSONB)
    event = {
        "event_id": func.uuidv7(),
        "workspace_id": literal(subscription.workspace_id),
        "kind": literal(EventKind.RECORD_DATE_REACHED.value),
        "subject_id": literal(subscription.automation_id),
        "payload": payload,
        "chain": literal([], trigger_event.c.chain.type),
        "attempts": literal(0),
        "created_at": literal(work.now, Timestamp),
        "due_at": literal(work.now, Timestamp),
    }
    reached = select(*event.values()).where(*field.conditions(test)).order_by(value, record.c.id)
    emitted = await work.execute(insert(trigger_event).from_select(list(event), reached))
    if emitted.rowcount:
        work.notify_workers = True


async def _next_moment(work: UnitOfWork, field: _WatchedField, until: datetime) -> datetime:
    """The time the first date within the horizon is due; without one, the end of the horizon."""
    horizon = until + HORIZON
    test = _between(field.watch, until, horizon)
    assert test is not None, "moments have no days without any"
    first = func.min(extract(field.spec).expression)
    value = await work.scalar(select(first).where(*field.conditions(test)))
    due = field.watch.due(value.isoformat() if isinstance(value, datetime) else value)
    return horizon if due is None else due

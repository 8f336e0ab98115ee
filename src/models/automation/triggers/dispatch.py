"""Dispatching events: which runs a batch of events starts (decisions D2).

A batch of events and everything that follows from it is one transaction, so that each automation
answers an event exactly once. When one automation fails on an event, only its part is undone, and
the event is tried again later. Automations that answered it before do nothing then: the id of a
run follows from its event. A debounced change has no such id, so the event names the automations
that have answered it.

The dispatcher in the worker asks `what_is_due` and calls `dispatch`.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

import structlog
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Integer,
    Interval,
    Uuid,
    bindparam,
    case,
    delete,
    exists,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automations.rules.triggers.filters import Asked
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.automation.triggers.debounce import debounce
from models.automation.triggers.reached_dates import start_run_for_date, start_runs_for_moved_date
from models.automation.triggers.rules.changes import payload_of
from models.automation.triggers.rules.matching import matches_change, matches_event
from models.automation.triggers.run_start import notify_filter_failed, start
from models.automation.triggers.subscribers import Subscriber, SubscriberCache
from models.automation.triggers.tables import debounced_change
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.messages.events.rules import ANSWERED_BY, EventKind
from models.messages.events.tables import TriggerEvent, automation_subscription, trigger_event
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.database_failures import is_conflict, is_connection_lost
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work

log = structlog.get_logger()

BATCH = 20
"""Events of one transaction. The next transaction serves other workspaces first."""
MAX_ATTEMPTS = 10
LONGEST_BACKOFF = timedelta(minutes=5)

FIRST_WORKSPACE = Id(int=0)
"""Sorts before the id of every workspace."""


class Due(Protocol):
    """Says which of events, debounced changes and polls of dates has something that is due."""

    events: bool
    changes: bool
    dates: bool


_CLAIM = PreparedStatement(
    select(trigger_event)
    .where(
        trigger_event.c.workspace_id > bindparam("after", type_=Uuid),
        trigger_event.c.due_at <= func.now(),
    )
    .order_by(trigger_event.c.workspace_id, trigger_event.c.id)
    .limit(bindparam("limit", type_=Integer))
    .with_for_update(skip_locked=True),
    TriggerEvent,
)
EVENTS_DUE = exists().where(trigger_event.c.due_at <= func.now())
CHANGES_DUE = exists().where(debounced_change.c.due_at <= func.now())
DATES_DUE = exists().where(automation_subscription.c.next_poll_at <= func.now())
_DUE = PreparedStatement(
    select(EVENTS_DUE.label("events"), CHANGES_DUE.label("changes"), DATES_DUE.label("dates")),
    Due,
)
_IDS = bindparam("ids", type_=ARRAY(BigInteger))
_DELETE = PreparedStatement(delete(trigger_event).where(trigger_event.c.id == func.any(_IDS)))
_POSTPONE = PreparedStatement(
    update(trigger_event)
    .where(trigger_event.c.id == bindparam("event"))
    .values(
        attempts=trigger_event.c.attempts + 1,
        payload=case(
            (
                trigger_event.c.kind == EventKind.RECORD_CHANGED.value,
                trigger_event.c.payload.concat(bindparam("answered", type_=JSONB)),
            ),
            else_=trigger_event.c.payload,
        ),
        due_at=func.now() + bindparam("backoff", type_=Interval),
    )
)


async def what_is_due(work: Work) -> Due:
    """The kinds of work that have something to do. What another dispatcher holds counts, too."""
    (due,) = await _DUE.rows(work, {})
    return due


async def dispatch(work: UnitOfWork, after: Id) -> Sequence[TriggerEvent]:
    """Answer the oldest due events of the workspaces whose ids are greater than `after`.

    Returns the events, in the order of workspaces and of their numbers. There are none when none
    of these workspaces has an event that is due.
    """
    events = await _CLAIM.rows(work, {"after": after, "limit": BATCH})
    cache = SubscriberCache(work)
    event_ids: list[int] = []
    for event in events:
        subscribers = await cache.subscribers_of(event)
        answered = await _answer_all(work, event, subscribers)
        if len(answered) == len(subscribers) or _is_given_up(event):
            event_ids.append(event.id)
        else:
            postponed = {"event": event.id, "backoff": backoff(event.attempts)}
            await _POSTPONE.execute(work, {**postponed, "answered": {ANSWERED_BY: answered}})
    if event_ids:
        await _DELETE.execute(work, {"ids": event_ids})
    return events


def backoff(attempts: int) -> timedelta:
    """The time an event waits after so many failed attempts."""
    return min(LONGEST_BACKOFF, timedelta(seconds=2**attempts))


def _is_given_up(event: TriggerEvent) -> bool:
    if event.attempts + 1 < MAX_ATTEMPTS:
        return False
    log.error("an event was dropped", event_id=str(event.event_id), kind=event.kind)
    return True


async def _answer_all(
    work: UnitOfWork, event: TriggerEvent, subscribers: Sequence[Subscriber]
) -> list[str]:
    """The ids of the automations that have answered the event, now or in an earlier attempt."""
    before = event.payload.get(ANSWERED_BY, ())
    answered = []
    for subscriber in subscribers:
        automation_id = str(subscriber.automation_id)
        try:
            if automation_id not in before:
                await _answer(work, event, subscriber)
            answered.append(automation_id)
        except Exception as error:
            if is_connection_lost(error):
                # Nothing of the batch is done: it is dispatched again.
                raise
            # A failure of one automation must not keep the others from answering.
            if is_conflict(error):
                log.warning("an event is answered later", automation_id=automation_id)
            else:
                log.exception("an event was not answered", automation_id=automation_id)
    return answered


async def _answer(work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber) -> None:
    try:
        if not await evaluate_bounded(lambda: _matches(event, subscriber, work.now)):
            return
    except BindingError as error:
        async with work.savepoint():
            await notify_filter_failed(work, subscriber, error.message)
        return
    async with work.savepoint():
        await _act(work, event, subscriber)


def _matches(event: TriggerEvent, subscriber: Subscriber, now: datetime) -> bool:
    """True when the trigger matches the event, as far as that is known without the database.

    Raises BindingError when a filter cannot be evaluated.
    """
    if _is_kept(event, subscriber) or event.kind == EventKind.RECORD_DATE_REACHED:
        return True
    if event.kind == EventKind.RECORD_CHANGED:
        return matches_change(subscriber.config, event.payload, Asked(subscriber.fields, now))
    return matches_event(subscriber.config, event.subject_id, event.payload)


def _is_kept(event: TriggerEvent, subscriber: Subscriber) -> bool:
    """True when the change starts no run now, but may lead to one later."""
    dated = subscriber.kind is TriggerKind.RECORD_DATE_REACHED
    return event.kind == EventKind.RECORD_CHANGED and (dated or subscriber.debounces)


async def _act(work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber) -> None:
    changed = event.kind == EventKind.RECORD_CHANGED
    if event.kind == EventKind.RECORD_DATE_REACHED:
        await start_run_for_date(work, event, subscriber)
    elif changed and subscriber.kind is TriggerKind.RECORD_DATE_REACHED:
        await start_runs_for_moved_date(work, event, subscriber)
    elif changed and subscriber.debounces:
        await debounce(work, event, subscriber)
    else:
        await start(work, subscriber, _trigger_payload(event), event.chain, event.event_id)


def _trigger_payload(event: TriggerEvent) -> JsonObject:
    """The trigger payload of the runs that an event starts (decisions C7)."""
    if event.kind == EventKind.RECORD_CHANGED:
        return payload_of(event.payload)
    return {key: value for key, value in event.payload.items() if key != ANSWERED_BY}

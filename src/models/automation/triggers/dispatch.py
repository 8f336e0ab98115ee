"""Dispatching events: which runs a batch of events starts, at once or debounced.

The dispatcher in the worker asks `what_is_due`. It calls `dispatch`, and `start_debounced_runs`
regularly.

A batch of events and everything that follows from it is one transaction, so that each automation
answers an event exactly once. When one automation fails on an event, only its part is undone, and
the event is tried again later. Automations that answered it before do nothing then: the id of a run
follows from its event. A debounced change has no such id, so the event names the automations that
have answered it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs.acceptance import RewrittenError
from models.automation.automations.rules.language.filters import Asked
from models.automation.automations.rules.triggers.kinds import TriggerKind, subject_of
from models.automation.inbox import rules as inbox_rules
from models.automation.inbox.store import Verdict, judge_again, keeping, verdict_rows
from models.automation.triggers import rules
from models.automation.triggers.record_dates import start_run_for_date, start_runs_for_moved_date
from models.automation.triggers.subscribers import (
    DebouncedChange,
    Subscriber,
    SubscriberCache,
    debounced_change,
    load_subscriber,
    notify_filter_failed,
    start_run,
)
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.data.records.rules.writes import bounded_change
from models.messages.events.rules import ANSWERED_BY, EventKind
from models.messages.events.store import TriggerEvent, automation_subscription, trigger_event
from runtime.database import UnitOfWork, Work
from runtime.postgresql.sessions import is_conflict, is_connection_lost
from runtime.postgresql.statements import PreparedStatement
from runtime.processes.bounded_processes import evaluate_bounded

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
    sa.select(trigger_event)
    .where(
        trigger_event.c.workspace_id > sa.bindparam("after", type_=sa.Uuid),
        trigger_event.c.due_at <= sa.func.now(),
    )
    .order_by(trigger_event.c.workspace_id, trigger_event.c.id)
    .limit(sa.bindparam("limit", type_=sa.Integer))
    # Another dispatcher holds the locked events: each is dispatched once.
    .with_for_update(skip_locked=True),
    TriggerEvent,
)
EVENTS_DUE = sa.exists().where(trigger_event.c.due_at <= sa.func.now())
CHANGES_DUE = sa.exists().where(debounced_change.c.due_at <= sa.func.now())
DATES_DUE = sa.exists().where(automation_subscription.c.next_poll_at <= sa.func.now())
_DUE = PreparedStatement(
    sa.select(EVENTS_DUE.label("events"), CHANGES_DUE.label("changes"), DATES_DUE.label("dates")),
    Due,
)
_IDS = sa.bindparam("ids", type_=sa.ARRAY(sa.BigInteger))
_DELETE = PreparedStatement(sa.delete(trigger_event).where(trigger_event.c.id == sa.func.any(_IDS)))
_POSTPONE = PreparedStatement(
    sa.update(trigger_event)
    .where(trigger_event.c.id == sa.bindparam("event"))
    .values(
        attempts=trigger_event.c.attempts + 1,
        payload=sa.case(
            (
                trigger_event.c.kind == EventKind.RECORD_CHANGED.value,
                trigger_event.c.payload.concat(sa.bindparam("answered", type_=JSONB)),
            ),
            else_=trigger_event.c.payload,
        ),
        due_at=sa.func.now() + sa.bindparam("backoff", type_=sa.Interval),
    )
)


_payload = trigger_event.c.payload.op("-")(sa.literal(ANSWERED_BY, sa.Text))
_bytes = sa.func.pg_column_size(trigger_event.c.payload)
_SOURCE = sa.case(
    {kind.value: source.value for kind, source in inbox_rules.DISPATCHED.items()},
    value=trigger_event.c.kind,
)
_KEPT = (
    sa.select(
        trigger_event.c.event_id.label("id"),
        trigger_event.c.workspace_id,
        _SOURCE.label("source"),
        trigger_event.c.subject_id,
        sa.case((_bytes <= inbox_rules.MAX_PAYLOAD, _payload)).label("payload"),
        _bytes.label("payload_bytes"),
        trigger_event.c.created_at.label("received_at"),
    )
    .where(trigger_event.c.id == sa.func.any(_IDS))
    .cte("event")
)
_KEEP = PreparedStatement(keeping(_KEPT))


async def _keep(
    work: UnitOfWork, events: Sequence[TriggerEvent], verdicts: Sequence[Verdict]
) -> None:
    """Keep the events of a batch that concerned an automation, while they are in the queue."""
    judged = {verdict.event_id for verdict in verdicts}
    ids = [event.id for event in events if event.event_id in judged]
    if ids:
        rows = {"now": work.now, "ids": ids, "verdicts": verdict_rows(verdicts)}
        await _KEEP.execute(work, rows)


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
    postponed: list[JsonObject] = []
    verdicts: list[Verdict] = []
    for event in events:
        subscribers = await cache.subscribers_of(event)
        answered = await _answer_all(work, event, subscribers, verdicts)
        unanswered = [
            subscriber.automation_id
            for subscriber in subscribers
            if str(subscriber.automation_id) not in answered
        ]
        if not unanswered or _is_given_up(event):
            event_ids.append(event.id)
            given_up = inbox_rules.Judgement(
                inbox_rules.EventOutcome.FAILED, detail={"attempts": MAX_ATTEMPTS}
            )
            verdicts += [Verdict(event.event_id, late_id, given_up) for late_id in unanswered]
        else:
            again = {"event": event.id, "backoff": backoff(event.attempts)}
            postponed.append({**again, "answered": {ANSWERED_BY: answered}})
    await _keep(work, events, verdicts)
    for late in postponed:
        await _POSTPONE.execute(work, late)
    if event_ids:
        await _DELETE.execute(work, {"ids": event_ids})
    return events


_NAMED = PreparedStatement(
    sa.select(trigger_event)
    .where(trigger_event.c.id == sa.func.any(_IDS))
    .order_by(trigger_event.c.workspace_id, trigger_event.c.id),
    TriggerEvent,
)


async def answer_events(work: UnitOfWork, event_ids: Sequence[int]) -> None:
    """Answer events of this very transaction, as `dispatch` does once it is committed."""
    cache = SubscriberCache(work)
    for event in await _NAMED.rows(work, {"ids": list(event_ids)}):
        await _answer_all(work, event, await cache.subscribers_of(event), [])


def backoff(attempts: int) -> timedelta:
    """The time an event waits after this number of failed attempts."""
    return min(LONGEST_BACKOFF, timedelta(seconds=2**attempts))


def _is_given_up(event: TriggerEvent) -> bool:
    if event.attempts + 1 < MAX_ATTEMPTS:
        return False
    log.error("an event was dropped", event_id=str(event.event_id), kind=event.kind)
    return True


async def _answer_all(
    work: UnitOfWork,
    event: TriggerEvent,
    subscribers: Sequence[Subscriber],
    verdicts: list[Verdict],
) -> list[str]:
    """The ids of the automations that have answered the event, now or in an earlier attempt.

    Adds a verdict for each that it concerned and that answered it now.
    """
    before = event.payload.get(ANSWERED_BY, ())
    answered = []
    for subscriber in subscribers:
        automation_id = str(subscriber.automation_id)
        try:
            if automation_id not in before:
                judgement = await _answer(work, event, subscriber)
                if judgement is not None:
                    verdicts.append(Verdict(event.event_id, subscriber.automation_id, judgement))
            answered.append(automation_id)
        except Exception as error:
            if is_connection_lost(error):
                # Nothing of the batch is done: it is dispatched again.
                raise
            # A failure of one automation must not keep the others from answering.
            if is_conflict(error) or isinstance(error, RewrittenError):
                log.warning("an event is answered later", automation_id=automation_id)
            else:
                log.exception("an event was not answered", automation_id=automation_id)
    return answered


async def _answer(
    work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber
) -> inbox_rules.Judgement | None:
    """The outcome of an event for an automation; None when it is of another kind."""
    if not _concerns(event, subscriber):
        return None
    if subscriber.dormant is not None:
        return inbox_rules.Judgement(subscriber.dormant)
    try:
        unmet = await evaluate_bounded(lambda: _unmet(event, subscriber, work.now))
    except BindingError as error:
        async with work.savepoint():
            await notify_filter_failed(work, subscriber, error.message)
        return inbox_rules.Judgement(
            inbox_rules.EventOutcome.FILTER_FAILED,
            detail={"message": inbox_rules.shortened(error.message)},
        )
    if unmet is not None:
        return inbox_rules.Judgement(inbox_rules.EventOutcome.FILTERED, detail=unmet)
    async with work.savepoint():
        return await _act(work, event, subscriber)


def _concerns(event: TriggerEvent, subscriber: Subscriber) -> bool:
    """True when an event is one that a trigger waits for, or changes one that it waited for."""
    if event.kind == EventKind.RECORD_DATE_REACHED:
        return True
    if event.kind != EventKind.RECORD_CHANGED:
        return rules.concerns_event(subscriber.config, event.subject_id, event.payload)
    if subscriber.dormant is None and _is_kept(event, subscriber):
        return True
    return rules.concerns_change(subscriber.config, event.payload)


def _unmet(event: TriggerEvent, subscriber: Subscriber, now: datetime) -> JsonObject | None:
    """The term of a trigger that an event does not meet, as far as the payload tells.

    Raises BindingError when a filter cannot be evaluated.
    """
    if _is_kept(event, subscriber) or event.kind == EventKind.RECORD_DATE_REACHED:
        return None
    if event.kind == EventKind.RECORD_CHANGED:
        return rules.mismatch(subscriber.config, event.payload, Asked(subscriber.fields, now))
    return rules.unmet_condition(subscriber.config, event.payload)


def _is_kept(event: TriggerEvent, subscriber: Subscriber) -> bool:
    """True when the change starts no run now, but may lead to one later."""
    dated = subscriber.kind is TriggerKind.RECORD_DATE_REACHED
    return event.kind == EventKind.RECORD_CHANGED and (dated or subscriber.debounces)


async def _act(
    work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber
) -> inbox_rules.Judgement | None:
    changed = event.kind == EventKind.RECORD_CHANGED
    if event.kind == EventKind.RECORD_DATE_REACHED:
        return await start_run_for_date(work, event, subscriber)
    if changed and subscriber.kind is TriggerKind.RECORD_DATE_REACHED:
        return await start_runs_for_moved_date(work, event, subscriber)
    if changed and subscriber.debounces:
        return await debounce(work, event, subscriber)
    return await start_run(work, subscriber, _trigger_payload(event), event.chain, event.event_id)


def _trigger_payload(event: TriggerEvent) -> JsonObject:
    """The trigger payload of the runs that an event starts (interface.md#triggers)."""
    if event.kind == EventKind.RECORD_CHANGED:
        return rules.payload_of(event.payload)
    return {key: value for key, value in event.payload.items() if key != ANSWERED_BY}


CHANGES_BATCH = 20
"""Debounced changes of one transaction."""

_table = debounced_change.c
_OF_RECORD = (
    _table.automation_id == sa.bindparam("automation_id"),
    _table.record_id == sa.bindparam("record_id"),
)

_LOCK_CHANGE = PreparedStatement(
    sa.select(debounced_change).where(*_OF_RECORD).with_for_update(), DebouncedChange
)


async def debounce(
    work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber
) -> inbox_rules.Judgement | None:
    """Merge a change into the debounced change of its record, or begin one with it.

    Only a change of the trigger's own kind begins one. A change of other fields than the trigger
    names neither begins one nor postpones it.

    The changes of a record that come within `debounceSeconds` are merged into one, from the state
    before the first to the state after the last. A run starts for the merged change, unless the
    changes undid each other.
    """
    config, change = subscriber.config, event.payload
    if change["system"] and not config.get("includeSystemChanges"):
        return _ignored(subscriber, change, {"includeSystemChanges": False}, value=True)
    key = {"automation_id": subscriber.automation_id, "record_id": Id(change["record"]["id"])}
    counts = rules.touches(config, change)
    due_at = event.created_at + timedelta(seconds=config["debounceSeconds"])
    row = await _LOCK_CHANGE.first(work, key)
    if row is None and counts and rules.kind_of(change) is subscriber.kind:
        if await _insert_change(work, event, {**key, "due_at": due_at}):
            return _debounced(event.event_id)
        # Another dispatcher inserted it meanwhile.
        row = await _LOCK_CHANGE.first(work, key)
    if row is None:
        return _ignored(
            subscriber, change, {"fieldKeys": config.get("fieldKeys")}, change["changedKeys"]
        )
    await _merge_change(work, event, row, max(row.due_at, due_at) if counts else row.due_at)
    return _debounced(row.first_event_id)


def _debounced(first_event_id: Id) -> inbox_rules.Judgement:
    return inbox_rules.Judgement(
        inbox_rules.EventOutcome.DEBOUNCED, detail={"eventId": str(first_event_id)}
    )


def _ignored(
    subscriber: Subscriber, change: JsonObject, term: JsonObject, value: object
) -> inbox_rules.Judgement | None:
    """The outcome of a change that begins no debounced one; None for one of another kind."""
    if not rules.concerns_change(subscriber.config, change):
        return None
    return inbox_rules.Judgement(
        inbox_rules.EventOutcome.FILTERED, detail={"term": term, "value": value}
    )


async def _insert_change(work: UnitOfWork, event: TriggerEvent, values: JsonObject) -> bool:
    statement = upsert(debounced_change).values(
        **values,
        workspace_id=event.workspace_id,
        first_event_id=event.event_id,
        first_event=event.id,
        last_event=event.id,
        change=event.payload,
        chain=event.chain,
        attempts=0,
    )
    return (await work.execute(statement.on_conflict_do_nothing())).rowcount > 0


async def _merge_change(
    work: UnitOfWork, event: TriggerEvent, row: DebouncedChange, due_at: datetime
) -> None:
    if event.id > row.last_event:
        change = rules.merged(row.change, event.payload)
    elif event.id < row.first_event:
        change = rules.merged(event.payload, row.change)
    else:
        change = rules.with_part(row.change, event.payload)
    await work.execute(
        sa.update(debounced_change)
        .where(_table.automation_id == row.automation_id, _table.record_id == row.record_id)
        .values(
            first_event=min(event.id, row.first_event),
            last_event=max(event.id, row.last_event),
            change=bounded_change(change),
            # The longest chain counts, so that debouncing hides no loop of runs.
            chain=max(row.chain, event.chain, key=len),
            due_at=due_at,
        )
    )


class DueChange(Protocol):
    """A debounced change that is due, with the subscription of its automation, if any is left."""

    automation_id: Id
    record_id: Id
    workspace_id: Id
    first_event_id: Id
    change: JsonObject
    chain: list[Id]
    attempts: int
    kind: str | None
    subject_id: Id | None


_DUE_CHANGES = PreparedStatement(
    sa.select(
        debounced_change, automation_subscription.c.kind, automation_subscription.c.subject_id
    )
    .outerjoin(
        automation_subscription,
        automation_subscription.c.automation_id == _table.automation_id,
    )
    .where(
        _table.due_at <= sa.func.now(),
        # An event from before the due time may still have to be merged into it.
        ~sa.exists(
            sa.select(trigger_event.c.id).where(
                trigger_event.c.workspace_id == _table.workspace_id,
                trigger_event.c.created_at <= _table.due_at,
                trigger_event.c.attempts == 0,
            )
        ),
    )
    .order_by(_table.due_at)
    .limit(sa.bindparam("limit", type_=sa.Integer))
    # A writer merges an event into a locked change, which is then no longer due.
    .with_for_update(of=debounced_change, skip_locked=True),
    DueChange,
)

_DELETE_CHANGE = PreparedStatement(sa.delete(debounced_change).where(*_OF_RECORD))

_POSTPONE_CHANGE = PreparedStatement(
    sa.update(debounced_change)
    .where(*_OF_RECORD)
    .values(
        attempts=_table.attempts + 1,
        due_at=sa.func.now() + sa.bindparam("backoff", type_=sa.Interval),
    )
)


async def start_debounced_runs(work: UnitOfWork) -> int:
    """Start the runs of debounced changes that are due. Returns the number of changes."""
    due = await _DUE_CHANGES.rows(work, {"limit": CHANGES_BATCH})
    for row in due:
        key = {"automation_id": row.automation_id, "record_id": row.record_id}
        try:
            async with work.savepoint():
                await _start_debounced_run(work, row)
                await _DELETE_CHANGE.execute(work, key)
        except Exception as error:
            if is_connection_lost(error):
                raise
            automation_id = str(row.automation_id)
            if is_conflict(error) or isinstance(error, RewrittenError):
                log.warning("a debounced change is answered later", automation_id=automation_id)
            else:
                log.exception("a debounced change was not answered", automation_id=automation_id)
            if row.attempts + 1 < MAX_ATTEMPTS:
                backoff = timedelta(seconds=2**row.attempts)
                await _POSTPONE_CHANGE.execute(work, {**key, "backoff": backoff})
            else:
                await _DELETE_CHANGE.execute(work, key)
    return len(due)


async def _start_debounced_run(work: UnitOfWork, row: DueChange) -> None:
    judgement = await _judge_debounced(work, row)
    await judge_again(work, Verdict(row.first_event_id, row.automation_id, judgement))


async def _judge_debounced(work: UnitOfWork, row: DueChange) -> inbox_rules.Judgement:
    subscriber = None if row.kind is None else await load_subscriber(work, row, row.workspace_id)
    if (
        subscriber is None
        or str(subject_of(subscriber.config)) != row.change["record"]["databaseId"]
    ):
        return inbox_rules.Judgement(inbox_rules.EventOutcome.DISABLED)
    if not rules.concerns_change(subscriber.config, row.change):
        return inbox_rules.Judgement(
            inbox_rules.EventOutcome.FILTERED,
            detail={"term": "The changes together are none of this kind."},
        )
    try:
        asked = Asked(subscriber.fields, work.now)
        unmet = await evaluate_bounded(lambda: rules.mismatch(subscriber.config, row.change, asked))
    except BindingError as error:
        await notify_filter_failed(work, subscriber, error.message)
        return inbox_rules.Judgement(
            inbox_rules.EventOutcome.FILTER_FAILED,
            detail={"message": inbox_rules.shortened(error.message)},
        )
    if unmet is not None:
        return inbox_rules.Judgement(inbox_rules.EventOutcome.FILTERED, detail=unmet)
    return await start_run(
        work, subscriber, rules.payload_of(row.change), row.chain, row.first_event_id
    )

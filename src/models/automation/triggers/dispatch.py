"""Dispatching events: from what happened to the runs that answer it (decisions D2).

A batch of events and everything that follows from them is one transaction, so that an event is
answered exactly once by each automation. What goes wrong with one automation is undone alone; its
event comes again later. Those who answered it before absorb it, for the id of a run follows from
its event; a change that went into a burst would begin another, so it names those who heard it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

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
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automations.rules.triggers.configs import TriggerKind
from models.automation.automations.rules.triggers.filters import Asked
from models.automation.triggers.bursts import add_to_burst
from models.automation.triggers.dates import answer_reached, note_dates
from models.automation.triggers.listening import Audience, Listener
from models.automation.triggers.rules.changes import payload_of
from models.automation.triggers.rules.hearing import answers_change, answers_event
from models.automation.triggers.starting import start, tell_of_filter
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.messages.events.rules import ANSWERED_BY, EventKind
from models.messages.events.tables import trigger_event
from runtime.database import UnitOfWork, Work
from runtime.prepared_statement import PreparedStatement

log = structlog.get_logger()

BATCH = 20
"""Events of one transaction; the next one is of other workspaces, if any wait."""
MAX_ATTEMPTS = 10
LONGEST_BACKOFF = timedelta(minutes=5)

NOBODY = Id(int=0)
"""Before every workspace."""

_CLAIM = PreparedStatement(
    select(trigger_event)
    .where(
        trigger_event.c.workspace_id > bindparam("after", type_=Uuid),
        trigger_event.c.due_at <= func.now(),
    )
    .order_by(trigger_event.c.workspace_id, trigger_event.c.id)
    .limit(bindparam("limit", type_=Integer))
    .with_for_update(skip_locked=True)
)
_WAITING = PreparedStatement(
    select(trigger_event.c.id).where(trigger_event.c.due_at <= func.now()).limit(1)
)
_IDS = bindparam("ids", type_=ARRAY(BigInteger))
_DONE = PreparedStatement(delete(trigger_event).where(trigger_event.c.id == func.any(_IDS)))
_AGAIN = PreparedStatement(
    update(trigger_event)
    .where(trigger_event.c.id == bindparam("event"))
    .values(
        attempts=trigger_event.c.attempts + 1,
        payload=case(
            (
                trigger_event.c.kind == EventKind.RECORD_CHANGED.value,
                trigger_event.c.payload.concat(bindparam("heard", type_=JSONB)),
            ),
            else_=trigger_event.c.payload,
        ),
        due_at=func.now() + bindparam("backoff", type_=Interval),
    )
)


async def any_waits(work: Work) -> bool:
    """Whether an event is due."""
    return await _WAITING.first(work, {}) is not None


async def dispatch(work: UnitOfWork, after: Id) -> Sequence[Any]:
    """Answer the oldest events of the workspaces behind one, in the order of their ids.

    Gives the events; none when none of these workspaces has any that is due.
    """
    events = await _CLAIM.rows(work, {"after": after, "limit": BATCH})
    audience = Audience(work)
    done: list[int] = []
    for event in events:
        listeners = await audience.of(event)
        answered = await _answered(work, event, listeners)
        if len(answered) == len(listeners) or _is_given_up(event):
            done.append(event.id)
        else:
            again = {"event": event.id, "backoff": backoff(event.attempts)}
            await _AGAIN.execute(work, {**again, "heard": {ANSWERED_BY: answered}})
    if done:
        await _DONE.execute(work, {"ids": done})
    return events


def backoff(attempts: int) -> timedelta:
    """How long to wait after so many attempts before the next."""
    return min(LONGEST_BACKOFF, timedelta(seconds=2**attempts))


def _is_given_up(event: Any) -> bool:
    if event.attempts + 1 < MAX_ATTEMPTS:
        return False
    log.error("an event was dropped", event_id=str(event.event_id), kind=event.kind)
    return True


async def _answered(work: UnitOfWork, event: Any, listeners: Sequence[Listener]) -> list[str]:
    """The automations among those that listen which have had their turn, now or before."""
    heard = event.payload.get(ANSWERED_BY, ())
    answered = []
    for listener in listeners:
        automation_id = str(listener.automation_id)
        try:
            if automation_id not in heard:
                await _answer(work, event, listener)
            answered.append(automation_id)
        except Exception:
            # One automation must not keep the others from hearing.
            log.exception("an event was not answered", automation_id=automation_id)
    return answered


async def _answer(work: UnitOfWork, event: Any, listener: Listener) -> None:
    try:
        if _declines(event, listener, work.now):
            return
    except BindingError as error:
        async with work.savepoint():
            await tell_of_filter(work, listener, error.message)
        return
    async with work.savepoint():
        await _act(work, event, listener)


def _declines(event: Any, listener: Listener, now: datetime) -> bool:
    """Whether the event is not for this automation, as far as it tells without the database.

    Raises BindingError of a filter.
    """
    if _waits(event, listener) or event.kind == EventKind.RECORD_DATE_REACHED:
        return False
    if event.kind == EventKind.RECORD_CHANGED:
        return not answers_change(listener.config, event.payload, Asked(listener.fields, now))
    return not answers_event(listener.config, event.subject_id, event.payload)


def _waits(event: Any, listener: Listener) -> bool:
    """Whether a change is only noted for later."""
    dated = listener.kind is TriggerKind.RECORD_DATE_REACHED
    return event.kind == EventKind.RECORD_CHANGED and (dated or _debounces(listener))


def _debounces(listener: Listener) -> bool:
    return bool(listener.config.get("debounceSeconds"))


async def _act(work: UnitOfWork, event: Any, listener: Listener) -> None:
    changed = event.kind == EventKind.RECORD_CHANGED
    if event.kind == EventKind.RECORD_DATE_REACHED:
        await answer_reached(work, event, listener)
    elif changed and listener.kind is TriggerKind.RECORD_DATE_REACHED:
        await note_dates(work, event, listener)
    elif changed and _debounces(listener):
        await add_to_burst(work, event, listener)
    else:
        await start(work, listener, _told(event), event.chain, event.event_id)


def _told(event: Any) -> JsonObject:
    """What runs are told of an event (decisions C7)."""
    if event.kind == EventKind.RECORD_CHANGED:
        return payload_of(event.payload)
    return {key: value for key, value in event.payload.items() if key != ANSWERED_BY}

"""Waiting out a record's changes: one run after so many quiet seconds (`debounceSeconds`).

A burst is answered as if it had been one change, from the state before the first to the state
after the last. What undoes itself is no change at all.
"""

from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy import Integer, Interval, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automations.rules.triggers.filters import Asked
from models.automation.triggers.listening import Listener, listener
from models.automation.triggers.rules.changes import bounded, kind_of, merged, payload_of, with_part
from models.automation.triggers.rules.hearing import answers_change, touches
from models.automation.triggers.rules.kinds import subject_of
from models.automation.triggers.starting import start, tell_of_filter
from models.automation.triggers.tables import trigger_burst
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.messages.events.tables import automation_subscription, trigger_event
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement

log = structlog.get_logger()

BATCH = 20
"""Bursts of one transaction."""
MAX_ATTEMPTS = 10

_burst = trigger_burst.c
_HELD = PreparedStatement(
    select(trigger_burst)
    .where(
        _burst.automation_id == bindparam("automation_id"),
        _burst.record_id == bindparam("record_id"),
    )
    .with_for_update()
)


async def add_to_burst(work: UnitOfWork, event: Any, listener: Listener) -> None:
    """Let a change wait with those of its record before it, or begin a burst with it.

    A burst begins with a change of the trigger's own kind. One of other fields than the trigger
    names neither begins a burst nor makes it longer.
    """
    config, change = listener.config, event.payload
    if change["system"] and not config.get("includeSystemChanges"):
        return
    named = {"automation_id": listener.automation_id, "record_id": Id(change["record"]["id"])}
    counts = touches(config, change)
    due_at = event.created_at + timedelta(seconds=config["debounceSeconds"])
    held = await _HELD.first(work, named)
    if held is None and counts and kind_of(change) is listener.kind:
        if await _began(work, event, {**named, "due_at": due_at}):
            return
        # Another dispatcher began it meanwhile.
        held = await _HELD.first(work, named)
    if held is not None:
        await _go_on(work, event, held, max(held.due_at, due_at) if counts else held.due_at)


async def _began(work: UnitOfWork, event: Any, values: JsonObject) -> bool:
    statement = upsert(trigger_burst).values(
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


async def _go_on(work: UnitOfWork, event: Any, held: Any, due_at: Any) -> None:
    if event.id > held.last_event:
        change = merged(held.change, event.payload)
    elif event.id < held.first_event:
        change = merged(event.payload, held.change)
    else:
        change = with_part(held.change, event.payload)
    await work.execute(
        update(trigger_burst)
        .where(_burst.automation_id == held.automation_id, _burst.record_id == held.record_id)
        .values(
            first_event=min(event.id, held.first_event),
            last_event=max(event.id, held.last_event),
            change=bounded(change),
            # The longest way that led here: a loop does not hide in a burst.
            chain=max(held.chain, event.chain, key=len),
            due_at=due_at,
        )
    )


_DUE = PreparedStatement(
    select(trigger_burst, automation_subscription.c.kind, automation_subscription.c.subject_id)
    .outerjoin(
        automation_subscription,
        automation_subscription.c.automation_id == _burst.automation_id,
    )
    .where(
        _burst.due_at <= func.now(),
        # What happened before it was due may still wait to be added to it.
        ~exists(
            select(trigger_event.c.id).where(
                trigger_event.c.workspace_id == _burst.workspace_id,
                trigger_event.c.created_at <= _burst.due_at,
                trigger_event.c.attempts == 0,
            )
        ),
    )
    .order_by(_burst.due_at)
    .limit(bindparam("limit", type_=Integer))
    .with_for_update(of=trigger_burst, skip_locked=True)
)
_ENDED = PreparedStatement(
    delete(trigger_burst).where(
        _burst.automation_id == bindparam("automation_id"),
        _burst.record_id == bindparam("record_id"),
    )
)
_AGAIN = PreparedStatement(
    update(trigger_burst)
    .where(
        _burst.automation_id == bindparam("automation_id"),
        _burst.record_id == bindparam("record_id"),
    )
    .values(
        attempts=_burst.attempts + 1,
        due_at=func.now() + bindparam("backoff", type_=Interval),
    )
)


async def answer_bursts(work: UnitOfWork) -> int:
    """Answer the bursts that have been quiet for long enough; gives how many there were."""
    due = await _DUE.rows(work, {"limit": BATCH})
    for burst in due:
        named = {"automation_id": burst.automation_id, "record_id": burst.record_id}
        try:
            async with work.savepoint():
                await _answer(work, burst)
                await _ENDED.execute(work, named)
        except Exception:
            log.exception("a burst was not answered", automation_id=str(burst.automation_id))
            if burst.attempts + 1 < MAX_ATTEMPTS:
                backoff = timedelta(seconds=2**burst.attempts)
                await _AGAIN.execute(work, {**named, "backoff": backoff})
            else:
                await _ENDED.execute(work, named)
    return len(due)


async def _answer(work: UnitOfWork, burst: Any) -> None:
    found = None if burst.kind is None else await listener(work, burst, burst.workspace_id)
    if found is None or str(subject_of(found.config)) != burst.change["record"]["databaseId"]:
        return
    try:
        answers = answers_change(found.config, burst.change, Asked(found.fields, work.now))
    except BindingError as error:
        await tell_of_filter(work, found, error.message)
        return
    if answers:
        payload = payload_of(burst.change)
        await start(work, found, payload, burst.chain, burst.first_event_id)

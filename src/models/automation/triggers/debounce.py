"""Debouncing the changes of a record: one run after `debounceSeconds` without a further change.

The changes of a record that come within this time are merged into one, from the state before the
first to the state after the last. A run starts for the merged change, unless the changes undid
each other. The dispatcher calls `debounce` for each change, and `start_debounced_runs` regularly.
"""

from datetime import datetime, timedelta
from typing import Protocol

import structlog
from sqlalchemy import Integer, Interval, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automations.rules.triggers.filters import Asked
from models.automation.automations.rules.triggers.subscriptions import subject_of
from models.automation.triggers.rules.changes import kind_of, merged, payload_of, with_part
from models.automation.triggers.rules.matching import matches_change, touches
from models.automation.triggers.run_start import notify_filter_failed, start
from models.automation.triggers.subscribers import Subscriber, load_subscriber
from models.automation.triggers.tables import DebouncedChange, debounced_change
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.data.records.rules.events import bounded
from models.messages.events.tables import TriggerEvent, automation_subscription, trigger_event
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.database_failures import is_conflict, is_connection_lost
from runtime.prepared_statement import PreparedStatement

log = structlog.get_logger()

BATCH = 20
"""Debounced changes of one transaction."""
MAX_ATTEMPTS = 10

_table = debounced_change.c
_OF_RECORD = (
    _table.automation_id == bindparam("automation_id"),
    _table.record_id == bindparam("record_id"),
)
_LOCK = PreparedStatement(
    select(debounced_change).where(*_OF_RECORD).with_for_update(), DebouncedChange
)


async def debounce(work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber) -> None:
    """Merge a change into the debounced change of its record, or begin one with it.

    Only a change of the trigger's own kind begins one. A change of other fields than the trigger
    names neither begins one nor postpones it.
    """
    config, change = subscriber.config, event.payload
    if change["system"] and not config.get("includeSystemChanges"):
        return
    key = {"automation_id": subscriber.automation_id, "record_id": Id(change["record"]["id"])}
    counts = touches(config, change)
    due_at = event.created_at + timedelta(seconds=config["debounceSeconds"])
    row = await _LOCK.first(work, key)
    if row is None and counts and kind_of(change) is subscriber.kind:
        if await _insert(work, event, {**key, "due_at": due_at}):
            return
        # Another dispatcher inserted it meanwhile.
        row = await _LOCK.first(work, key)
    if row is not None:
        await _merge(work, event, row, max(row.due_at, due_at) if counts else row.due_at)


async def _insert(work: UnitOfWork, event: TriggerEvent, values: JsonObject) -> bool:
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


async def _merge(
    work: UnitOfWork, event: TriggerEvent, row: DebouncedChange, due_at: datetime
) -> None:
    if event.id > row.last_event:
        change = merged(row.change, event.payload)
    elif event.id < row.first_event:
        change = merged(event.payload, row.change)
    else:
        change = with_part(row.change, event.payload)
    await work.execute(
        update(debounced_change)
        .where(_table.automation_id == row.automation_id, _table.record_id == row.record_id)
        .values(
            first_event=min(event.id, row.first_event),
            last_event=max(event.id, row.last_event),
            change=bounded(change),
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


_DUE = PreparedStatement(
    select(debounced_change, automation_subscription.c.kind, automation_subscription.c.subject_id)
    .outerjoin(
        automation_subscription,
        automation_subscription.c.automation_id == _table.automation_id,
    )
    .where(
        _table.due_at <= func.now(),
        # An event from before the due time may still have to be merged into it.
        ~exists(
            select(trigger_event.c.id).where(
                trigger_event.c.workspace_id == _table.workspace_id,
                trigger_event.c.created_at <= _table.due_at,
                trigger_event.c.attempts == 0,
            )
        ),
    )
    .order_by(_table.due_at)
    .limit(bindparam("limit", type_=Integer))
    .with_for_update(of=debounced_change, skip_locked=True),
    DueChange,
)
_DELETE = PreparedStatement(delete(debounced_change).where(*_OF_RECORD))
_POSTPONE = PreparedStatement(
    update(debounced_change)
    .where(*_OF_RECORD)
    .values(
        attempts=_table.attempts + 1,
        due_at=func.now() + bindparam("backoff", type_=Interval),
    )
)


async def start_debounced_runs(work: UnitOfWork) -> int:
    """Start the runs of debounced changes that are due. Returns how many changes were due."""
    due = await _DUE.rows(work, {"limit": BATCH})
    for row in due:
        key = {"automation_id": row.automation_id, "record_id": row.record_id}
        try:
            async with work.savepoint():
                await _start_run(work, row)
                await _DELETE.execute(work, key)
        except Exception as error:
            if is_connection_lost(error):
                raise
            automation_id = str(row.automation_id)
            if is_conflict(error):
                log.warning("a debounced change is answered later", automation_id=automation_id)
            else:
                log.exception("a debounced change was not answered", automation_id=automation_id)
            if row.attempts + 1 < MAX_ATTEMPTS:
                backoff = timedelta(seconds=2**row.attempts)
                await _POSTPONE.execute(work, {**key, "backoff": backoff})
            else:
                await _DELETE.execute(work, key)
    return len(due)


async def _start_run(work: UnitOfWork, row: DueChange) -> None:
    subscriber = None if row.kind is None else await load_subscriber(work, row, row.workspace_id)
    if (
        subscriber is None
        or str(subject_of(subscriber.config)) != row.change["record"]["databaseId"]
    ):
        return
    try:
        asked = Asked(subscriber.fields, work.now)
        matches = await evaluate_bounded(
            lambda: matches_change(subscriber.config, row.change, asked)
        )
    except BindingError as error:
        await notify_filter_failed(work, subscriber, error.message)
        return
    if matches:
        await start(work, subscriber, payload_of(row.change), row.chain, row.first_event_id)

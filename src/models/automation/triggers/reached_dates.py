"""Runs of dates in records that are reached (`record_date_reached`).

Nothing is stored per record. A subscription holds the moment up to which dates have been polled
(`polled_until`) and when the next poll is due (`next_poll_at`). A poll (`date_polls`) finds the
records whose date lies between, and emits an event for each; `start_run_for_date` answers it.

A poll misses two cases, which `start_runs_for_moved_date` finds in the events of changes: a date
that was set to a moment polled already, and a date that was moved after it was reached. The id of
a run follows from the record and the date, so that no date starts two runs.
"""

from datetime import datetime, timedelta

from sqlalchemy import Uuid, bindparam, select, update

from models.automation.automation_runs.joins import RUN, run_of
from models.automation.automations.rules.triggers.subscriptions import subject_of
from models.automation.triggers.rules.due_dates import DateWatch
from models.automation.triggers.run_start import start
from models.automation.triggers.subscribers import Subscriber
from models.core.base import Id, JsonObject
from models.data.fields.field_rows import field_kind
from models.data.fields.queries import load_schema
from models.data.records.events import any_automation
from models.data.records.queries.creations import last_change
from models.data.records.queries.details import record_details
from models.data.records.queries.records import find_record
from models.messages.events.tables import TriggerEvent, automation_subscription
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp
from runtime.timestamps import wire_timestamp

SHORTLY = timedelta(minutes=1)
"""A run leads to the run of a date that it sets at most this far ahead."""

_table = automation_subscription.c
_LOCK = PreparedStatement(
    select(_table.polled_until)
    .where(
        _table.workspace_id == bindparam("workspace_id", type_=Uuid),
        _table.automation_id == bindparam("automation_id", type_=Uuid),
    )
    .with_for_update(key_share=True)
)
_POLL_BY = PreparedStatement(
    update(automation_subscription)
    .where(
        _table.automation_id == bindparam("automation", type_=Uuid),
        _table.next_poll_at > bindparam("due", type_=Timestamp),
    )
    .values(next_poll_at=bindparam("due", type_=Timestamp))
)


async def start_runs_for_moved_date(
    work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber
) -> None:
    """Start the runs of dates in a change that polls miss, and have a new date polled in time.

    The subscription is locked, so that no poll runs meanwhile.
    """
    key = {"workspace_id": event.workspace_id, "automation_id": subscriber.automation_id}
    subscription = await _LOCK.first(work, key)
    watch = await _watch(work, subscriber, event.subject_id)
    if subscription is None or watch is None:
        return
    change = event.payload
    was = watch.due_of(change["before"])
    due = None if change["gone"] else watch.due_of(change["record"])
    if was == due:
        return
    if was is not None and subscription.polled_until < was <= event.created_at:
        await _start(work, subscriber, change["before"], was, event.chain)
    if due is None:
        return
    if due > subscription.polled_until:
        await _POLL_BY.execute(work, {"automation": subscriber.automation_id, "due": due})
    elif due >= event.created_at:
        await _start(work, subscriber, change["record"], due, event.chain)


async def start_run_for_date(work: UnitOfWork, event: TriggerEvent, subscriber: Subscriber) -> None:
    """Start the run of a date that a poll found, unless the record has been deleted since."""
    record_id = Id(event.payload["recordId"])
    row = await find_record(work, event.workspace_id, record_id)
    if row is None or subject_of(subscriber.config) != row.database_id:
        return
    watch = await _watch(work, subscriber, row.database_id)
    due = None if watch is None else watch.due(event.payload["value"])
    try:
        schema = await load_schema(work, event.workspace_id, row.database_id)
    except NotFoundError:
        return
    if due is None:
        return
    (detail,) = await record_details(work, any_automation(event.workspace_id), schema, [row])
    await _start(work, subscriber, detail.to_json(), due, await _chain(work, event, record_id, due))


async def _start(
    work: UnitOfWork, subscriber: Subscriber, shown: JsonObject, due: datetime, chain: list[Id]
) -> None:
    payload = {"record": shown, "dueAt": wire_timestamp(due)}
    await start(work, subscriber, payload, chain, shown["id"], payload["dueAt"])


async def _watch(work: UnitOfWork, subscriber: Subscriber, database_id: Id) -> DateWatch | None:
    """The watch of the trigger; None when the field is gone, or holds no dates any more."""
    field_key = subscriber.config["fieldKey"]
    kind = await field_kind(work, subscriber.workspace_id, database_id, field_key)
    return DateWatch.of(subscriber.config, kind)


async def _chain(work: UnitOfWork, event: TriggerEvent, record_id: Id, due: datetime) -> list[Id]:
    """The runs that led to a date by the record's last change, if it came shortly before."""
    last = last_change(event.workspace_id, record_id).subquery("last")
    run = await work.first(
        select(RUN.id, RUN.chain)
        .select_from(last)
        .join(*run_of(last.c.run_id))
        .where(RUN.workspace_id == event.workspace_id, last.c.at > due - SHORTLY)
    )
    return [] if run is None else [*run.chain, run.id]

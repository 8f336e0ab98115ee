"""Dates in records that are reached (`record_date_reached`).

Nothing is kept per record. A subscription knows up to which moment everything was answered
(`reached_at`), and when the next look is due (`look_at`). A look asks the records, through the
side index of a large database, whose date lies between then and now; each becomes an event. What
the records no longer say is in the events of their changes: a date set to a moment that was looked
for already, and a date moved after it was reached. The run of a record and a moment has one id,
so whoever comes first starts it.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Uuid, bindparam, select, update

from models.automation.automation_runs.tables import automation_run
from models.automation.triggers.listening import Listener
from models.automation.triggers.record_events import any_automation
from models.automation.triggers.rules.kinds import subject_of
from models.automation.triggers.rules.moments import DateWatch
from models.automation.triggers.starting import start
from models.core.base import Id, JsonObject
from models.data.databases.field_rows import field_kind
from models.data.databases.queries import load_schema
from models.data.record_changes.queries import last_change
from models.data.records.details import record_details
from models.data.records.queries import this_record
from models.data.records.tables import record
from models.messages.events.tables import automation_subscription
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp
from runtime.timestamps import wire_timestamp

SHORTLY = timedelta(minutes=1)
"""A run that sets a date no further off than this is answered as what led to the date's run."""

_table = automation_subscription.c
_HELD = PreparedStatement(
    select(_table.reached_at)
    .where(
        _table.workspace_id == bindparam("workspace_id", type_=Uuid),
        _table.automation_id == bindparam("automation_id", type_=Uuid),
    )
    .with_for_update(key_share=True)
)
_LOOK_BY = PreparedStatement(
    update(automation_subscription)
    .where(
        _table.automation_id == bindparam("automation", type_=Uuid),
        _table.look_at > bindparam("due", type_=Timestamp),
    )
    .values(look_at=bindparam("due", type_=Timestamp))
)


async def note_dates(work: UnitOfWork, event: Any, listener: Listener) -> None:
    """What a change says of dates that no look will find: moved when reached, or set too late.

    The subscription is held, so that no look goes on meanwhile.
    """
    named = {"workspace_id": event.workspace_id, "automation_id": listener.automation_id}
    held = await _HELD.first(work, named)
    watch = await _watch(work, listener, event.subject_id)
    if held is None or watch is None:
        return
    change = event.payload
    was = watch.due_of(change["before"])
    due = None if change["gone"] else watch.due_of(change["record"])
    if was == due:
        return
    if was is not None and held.reached_at < was <= event.created_at:
        await _start(work, listener, change["before"], was, event.chain)
    if due is None:
        return
    if due > held.reached_at:
        await _LOOK_BY.execute(work, {"automation": listener.automation_id, "due": due})
    elif due >= event.created_at:
        await _start(work, listener, change["record"], due, event.chain)


async def answer_reached(work: UnitOfWork, event: Any, listener: Listener) -> None:
    """Start the run of a date that a look found, unless the record is gone since."""
    record_id = Id(event.payload["recordId"])
    row = await work.first(
        select(record).where(*this_record(event.workspace_id, record_id), ~record.c.archived)
    )
    if row is None or subject_of(listener.config) != row.database_id:
        return
    watch = await _watch(work, listener, row.database_id)
    due = None if watch is None else watch.due(event.payload["value"])
    try:
        schema = await load_schema(work, event.workspace_id, row.database_id)
    except NotFoundError:
        return
    if due is None:
        return
    (detail,) = await record_details(work, any_automation(event.workspace_id), schema, [row])
    shown = detail.model_dump(mode="json", by_alias=True)
    await _start(work, listener, shown, due, await _chain(work, event, record_id, due))


async def _start(
    work: UnitOfWork, listener: Listener, shown: JsonObject, due: datetime, chain: list[Id]
) -> None:
    payload = {"record": shown, "dueAt": wire_timestamp(due)}
    await start(work, listener, payload, chain, shown["id"], payload["dueAt"])


async def _watch(work: UnitOfWork, listener: Listener, database_id: Id) -> DateWatch | None:
    """What the trigger waits for; None when the field is gone, or no date any more."""
    field_key = listener.config["fieldKey"]
    kind = await field_kind(work, listener.workspace_id, database_id, field_key)
    return DateWatch.of(listener.config, kind)


async def _chain(work: UnitOfWork, event: Any, record_id: Id, due: datetime) -> list[Id]:
    """The runs that led to a date: those of the record's last change, if it was due shortly."""
    last = last_change(event.workspace_id, record_id).subquery("last")
    run = automation_run.c
    found = await work.first(
        select(run.id, run.chain)
        .join(last, last.c.run_id == run.id)
        .where(run.workspace_id == event.workspace_id, last.c.at > due - SHORTLY)
    )
    return [] if found is None else [*found.chain, found.id]

"""The one way in which entries change: held, written, and what follows from it in one transaction.

Completing an entry starts automations; what a timer ended notifies its user; an execution that
waits for the time of an entry hears when that has moved.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Uuid, bindparam, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.core.revisions import next_updated_at
from models.data.time_entries.commands.timer_fields import TimerFields
from models.data.time_entries.queries.entries import detail_of
from models.data.time_entries.rows import times_of, values_of
from models.data.time_entries.rules.kinds import (
    OPEN_ENTRY,
    TIME_MOVED,
    TIMED_MODES,
    CompletedBy,
    EntryMode,
    EntryStatus,
    TargetKind,
)
from models.data.time_entries.rules.times import Times, milliseconds
from models.data.time_entries.tables import TimeEntry, time_entry
from models.messages.events.commands import time_entry_completed
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.people.users.queries import display_name_of
from models.people.workspaces.queries import workspace_name_of
from runtime import outbox
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.families import Family
from runtime.prepared_statement import PreparedStatement

_TITLE = 200
_entry = time_entry.c


async def hold(work: UnitOfWork, workspace_id: Id, entry_id: Id) -> TimeEntry:
    """An entry, held until the transaction ends. Raises `NotFoundError`."""
    conditions = (_entry.workspace_id == workspace_id, _entry.id == entry_id)
    entry = await work.first(select(time_entry).where(*conditions).with_for_update(), of=TimeEntry)
    if entry is None:
        raise NotFoundError("entry")
    return entry


async def insert_entry(
    work: UnitOfWork, values: dict[str, Any], fields: TimerFields
) -> TimeEntry | None:
    """Insert an entry; None when one is active, or was made by the same mutation, already."""
    row = await _INSERT.first(work, {**_NO_VALUES, **values, "_user_id": values["user_id"]})
    if row is None:
        return None
    fields.touch(row)
    if row.status == EntryStatus.COMPLETED:
        await _emit_completed(work, row)
    elif is_timed(row):
        summary = f"{row.mode.capitalize()} of a time entry"
        request: outbox.StartRequest = {"summary": summary, "resourceId": str(row.id)}
        await lifecycle.start(work, Family.TIMER_DUE, row.workspace_id, row.id, request)
    return row


async def write_entry(
    work: UnitOfWork,
    entry: TimeEntry,
    values: dict[str, Any],
    fields: TimerFields,
    *,
    signalled: bool = True,
) -> TimeEntry:
    """Write values of a held entry; `signalled` unless its own execution writes them."""
    statement = (
        update(time_entry)
        .where(_entry.workspace_id == entry.workspace_id, _entry.id == entry.id)
        .values(**values, updated_at=next_updated_at(_entry.updated_at, work.now))
        .returning(*_named(literal(entry.user_id, _entry.user_id.type)))
    )
    (row,) = await work.rows(statement, of=TimeEntry)
    for each in (entry, row):
        fields.touch(each)
    if row.status == EntryStatus.COMPLETED and entry.status in OPEN_ENTRY:
        await _emit_completed(work, row)
    if signalled and is_timed(entry) and (entry.status, entry.due_at) != (row.status, row.due_at):
        await signal_execution(work, row.workspace_id, row.id)
    return row


async def complete(
    work: UnitOfWork,
    entry: TimeEntry,
    times: Times,
    by: CompletedBy,
    fields: TimerFields,
    *,
    user_id: Id | None = None,
    signalled: bool = True,
    **values: object,
) -> TimeEntry:
    """Complete a held entry, whose times say when it ended."""
    changes = {
        **values,
        **values_of(times),
        "duration_ms": milliseconds(times.elapsed(work.now)),
        "status": EntryStatus.COMPLETED.value,
        "completed_by": by.value,
        "closed_at": work.now,
        "updated_by_user_id": user_id or entry.user_id,
    }
    return await write_entry(work, entry, changes, fields, signalled=signalled)


async def settle(
    work: UnitOfWork,
    entry: TimeEntry,
    now: datetime,
    fields: TimerFields,
    *,
    signalled: bool = True,
) -> TimeEntry:
    """End a held entry whose time is up; it has ended at `dueAt`, whoever finds it and when."""
    if entry.due_at is None or entry.due_at > now:
        return entry
    times = times_of(entry).end(entry.due_at)
    return await complete(work, entry, times, CompletedBy.TIMER, fields, signalled=signalled)


async def _emit_completed(work: UnitOfWork, row: TimeEntry) -> None:
    """Emit the event of a completed entry, and ring where its timer ended it."""
    shown = detail_of(row).model_dump(mode="json", by_alias=True)
    await time_entry_completed(work, row.workspace_id, shown, row.database_id)
    if row.completed_by == CompletedBy.TIMER:
        await _ring(work, row)


async def _ring(work: UnitOfWork, row: TimeEntry) -> None:
    of_record = row.target_kind == TargetKind.DATABASE_RECORD
    notice = Notice(
        kind=NotificationKind.TIMER_DONE,
        title=f"Time is up: {row.target_title_snapshot}"[:_TITLE],
        body=row.summary or "",
        item_id=row.item_id,
        record_id=row.target_id if of_record else None,
        data={"timeEntryId": str(row.id), "mode": row.mode, "soundId": row.sound_id},
        key=f"timer_done/{row.id}",
    )
    await notify(work, row.workspace_id, [row.user_id], notice)


def _named(user_id: ColumnElement[Any]) -> tuple[Any, ...]:
    """The columns of a written row of a user, with their name."""
    # A value, because RETURNING gives a subquery no column to refer to.
    return time_entry, display_name_of(user_id).label("user_display_name")


def is_timed(row: TimeEntry) -> bool:
    """True when an entry ends by itself when its time is up."""
    return EntryMode(row.mode) in TIMED_MODES


async def signal_execution(work: UnitOfWork, workspace_id: Id, entry_id: Id) -> None:
    """Have the execution of an entry look at it again."""
    request: outbox.SignalRequest = {
        "workflowId": Family.TIMER_DUE.workflow_id(entry_id),
        "signal": TIME_MOVED,
        "arguments": [],
    }
    await outbox.append(
        work,
        intent=outbox.Intent.SIGNAL,
        family=Family.TIMER_DUE,
        workspace_id=workspace_id,
        subject_id=entry_id,
        request=request,
    )


# A new entry has not been paused.
_GIVEN = [column for column in time_entry.columns if column is not _entry.pauses]
_NO_VALUES = dict.fromkeys(column.name for column in _GIVEN)
_VALUES = {column.name: bindparam(column.name, type_=column.type) for column in _GIVEN}
_INSERT = PreparedStatement(
    upsert(time_entry)
    .values(
        {
            **_VALUES,
            "target_title_snapshot": func.coalesce(
                _VALUES["target_title_snapshot"], workspace_name_of(_VALUES["workspace_id"])
            ),
        }
    )
    .on_conflict_do_nothing()
    .returning(*_named(bindparam("_user_id", type_=Uuid))),
    TimeEntry,
)

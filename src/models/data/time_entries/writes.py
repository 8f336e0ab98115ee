"""The one way entries change, with their timer fields; entries ended by time or absence.

What follows from a change is written in its transaction. Completing an entry starts automations;
what a timer ended notifies its user; an execution that waits for the time of an entry hears when
that has moved.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.core.purging import Retention
from models.core.values import next_updated_at
from models.data.fields.rows import find_fields
from models.data.fields.rules.fields import FieldKind, Schema
from models.data.records.commands import hold_record, write_timer
from models.data.time_entries import rules
from models.data.time_entries.queries import detail_of, times_of, values_of
from models.data.time_entries.tables import TIME_ENTRIES, TimeEntry, time_entry
from models.messages.events.store import time_entry_completed
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.people.users import display_name_of
from models.people.workspaces import workspace_name_of
from runtime.database import UnitOfWork
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import TIME_MOVED, WorkflowKind

_entry = time_entry.c


@dataclass(frozen=True, slots=True)
class TimerFields:
    """The fields that changed entries stand in, brought up to date at the end of a command.

    Records are held in the order of their ids, so that two people who change places do not wait
    for each other.
    """

    work: UnitOfWork
    touched: dict[tuple[Id, Id], list[TimeEntry]] = field(default_factory=dict)
    latest: dict[Id, TimeEntry] = field(default_factory=dict)

    def touch(self, row: TimeEntry) -> None:
        """An entry, as it was or as it is now, that a field counts."""
        if row.field_id is not None:
            self.latest[row.id] = row
            self.touched.setdefault((row.target_id, row.field_id), []).append(row)

    async def write(self) -> None:
        """Bring the fields up to date; fields that are gone, or are no timers now, are left out."""
        for record_id, field_id in sorted(self.touched):
            entries = self.touched[record_id, field_id]
            workspace_id, database_id = entries[0].workspace_id, entries[0].database_id
            assert database_id is not None, "a field belongs to a database"
            fields = await find_fields(self.work, workspace_id, database_id)
            spec = next((one for one in fields.values() if one.id == field_id), None)
            if spec is None or spec.kind is not FieldKind.TIMER:
                continue
            schema = Schema(workspace_id, database_id, fields)
            if not await hold_record(self.work, schema, record_id):
                continue
            await self._count(entries, spec.settings.get("roundToMinutes"))
            total, running = await self._time(workspace_id, record_id, field_id)
            await write_timer(self.work, schema, record_id, spec.key, total, running)

    async def _count(self, entries: Sequence[TimeEntry], round_to_minutes: int | None) -> None:
        """Write what completed entries count for: what the field says now, and for good."""
        for row in entries:
            if row.duration_ms is None or self.latest[row.id] is not row:
                continue
            length = rules.rounded_time(timedelta(milliseconds=row.duration_ms), round_to_minutes)
            this = (_entry.workspace_id == row.workspace_id, _entry.id == row.id)
            await self.work.execute(
                sa.update(time_entry).where(*this).values(counted_ms=rules.milliseconds(length))
            )

    async def _time(self, workspace_id: Id, record_id: Id, field_id: Id) -> tuple[int, Id | None]:
        """Milliseconds of completed entries, and the running one that was started last."""
        is_active = _entry.status == rules.EntryStatus.ACTIVE
        newest = aggregate_order_by(_entry.id, _entry.started_at.desc(), _entry.id.desc())
        (row,) = await self.work.rows(
            sa.select(
                sa.func.coalesce(sa.func.sum(_entry.counted_ms), 0).label("total"),
                sa.func.array_agg(newest).filter(is_active).label("running"),
            ).where(
                _entry.workspace_id == workspace_id,
                _entry.target_id == record_id,
                _entry.field_id == field_id,
            )
        )
        return int(row.total), row.running[0] if row.running else None


_TITLE = 200


async def hold_entry(work: UnitOfWork, workspace_id: Id, entry_id: Id) -> TimeEntry:
    """An entry, held until the transaction ends. Raises `NotFoundError`."""
    conditions = (_entry.workspace_id == workspace_id, _entry.id == entry_id)
    return await work.one(
        sa.select(time_entry).where(*conditions).with_for_update(), "entry", of=TimeEntry
    )


async def insert_entry(
    work: UnitOfWork, values: dict[str, Any], fields: TimerFields
) -> TimeEntry | None:
    """Insert an entry; None when one is active, or was made by the same mutation, already."""
    row = await _INSERT.first(work, {**_NO_VALUES, **values, "_user_id": values["user_id"]})
    if row is None:
        return None
    fields.touch(row)
    if row.status == rules.EntryStatus.COMPLETED:
        await _emit_completed(work, row)
    elif is_timed(row):
        summary = f"{row.mode.capitalize()} of a time entry"
        request: outbox.StartRequest = {"summary": summary, "resourceId": str(row.id)}
        await lifecycle.start(work, WorkflowKind.TIMER_DUE, row.workspace_id, row.id, request)
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
        sa.update(time_entry)
        .where(_entry.workspace_id == entry.workspace_id, _entry.id == entry.id)
        .values(**values, updated_at=next_updated_at(_entry.updated_at, work.now))
        .returning(*_named(sa.literal(entry.user_id, _entry.user_id.type)))
    )
    (row,) = await work.rows(statement, of=TimeEntry)
    for each in (entry, row):
        fields.touch(each)
    if row.status == rules.EntryStatus.COMPLETED and entry.status in rules.OPEN_ENTRY:
        await _emit_completed(work, row)
    if signalled and is_timed(entry) and (entry.status, entry.due_at) != (row.status, row.due_at):
        await signal_execution(work, row.workspace_id, row.id)
    return row


async def complete_entry(
    work: UnitOfWork,
    entry: TimeEntry,
    times: rules.Times,
    by: rules.CompletedBy,
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
        "duration_ms": rules.milliseconds(times.elapsed(work.now)),
        "status": rules.EntryStatus.COMPLETED.value,
        "completed_by": by.value,
        "closed_at": work.now,
        "updated_by_user_id": user_id or entry.user_id,
    }
    return await write_entry(work, entry, changes, fields, signalled=signalled)


async def settle_entry(
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
    return await complete_entry(
        work, entry, times, rules.CompletedBy.TIMER, fields, signalled=signalled
    )


async def _emit_completed(work: UnitOfWork, row: TimeEntry) -> None:
    """Emit the event of a completed entry, and ring where its timer ended it."""
    shown = detail_of(row).model_dump(mode="json", by_alias=True)
    await time_entry_completed(work, row.workspace_id, shown, row.database_id)
    if row.completed_by == rules.CompletedBy.TIMER:
        await _ring(work, row)


async def _ring(work: UnitOfWork, row: TimeEntry) -> None:
    of_record = row.target_kind == rules.TargetKind.DATABASE_RECORD
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


def _named(user_id: sa.ColumnElement[Any]) -> tuple[Any, ...]:
    """The columns of a written row of a user, with their name."""
    # A value, because RETURNING gives a subquery no column to refer to.
    return time_entry, display_name_of(user_id).label("user_display_name")


def is_timed(row: TimeEntry) -> bool:
    """True when an entry ends by itself when its time is up."""
    return rules.EntryMode(row.mode) in rules.TIMED_MODES


async def signal_execution(work: UnitOfWork, workspace_id: Id, entry_id: Id) -> None:
    """Have the execution of an entry look at it again."""
    request: outbox.SignalRequest = {
        "workflowId": WorkflowKind.TIMER_DUE.workflow_id(entry_id),
        "signal": TIME_MOVED,
        "arguments": [],
    }
    await outbox.append(
        work,
        intent=outbox.Intent.SIGNAL,
        workflow_kind=WorkflowKind.TIMER_DUE,
        workspace_id=workspace_id,
        subject_id=entry_id,
        request=request,
    )


# A new entry has not been paused.
_GIVEN = [column for column in time_entry.columns if column is not _entry.pauses]
_NO_VALUES = dict.fromkeys(column.name for column in _GIVEN)
_VALUES = {column.name: sa.bindparam(column.name, type_=column.type) for column in _GIVEN}
_INSERT = PreparedStatement(
    upsert(time_entry)
    .values(
        {
            **_VALUES,
            "target_title_snapshot": sa.func.coalesce(
                _VALUES["target_title_snapshot"], workspace_name_of(_VALUES["workspace_id"])
            ),
        }
    )
    .on_conflict_do_nothing()
    .returning(*_named(sa.bindparam("_user_id", type_=sa.Uuid))),
    TimeEntry,
)


async def end_when_due(work: UnitOfWork, entry_id: Id, now: datetime) -> TimeEntry | None:
    """The entry as it is at a moment: completed if its time is up; None when it is not open."""
    entry = await lifecycle.hold(work, TIME_ENTRIES, entry_id, of=TimeEntry)
    if entry is None:
        return None
    fields = TimerFields(work)
    settled = await settle_entry(work, entry, now, fields, signalled=False)
    await fields.write()
    return settled


async def give_up_entry(work: UnitOfWork, entry_id: Id) -> bool:
    """Complete an open entry that cannot be timed; False when it has ended before."""
    entry = await lifecycle.hold(work, TIME_ENTRIES, entry_id, of=TimeEntry)
    if entry is None:
        return False
    fields = TimerFields(work)
    await _end_entry(work, entry, rules.CompletedBy.SYSTEM, fields, None)
    await fields.write()
    return True


async def restart_timer(work: UnitOfWork, workspace_id: Id, entry_id: Id, restarts: int) -> None:
    """Have the execution of an open entry started anew."""
    await lifecycle.start(
        work,
        WorkflowKind.TIMER_DUE,
        workspace_id,
        entry_id,
        {
            "summary": "Restarted by the reconciler",
            "resourceId": str(entry_id),
            "restarts": restarts,
        },
    )


async def end_entries_of_member(work: UnitOfWork, actor: Actor, user_id: Id) -> None:
    """Complete what runs, or stands still, of someone who is no member any more."""
    by = rules.CompletedBy.USER if user_id == actor.user_id else rules.CompletedBy.ADMIN
    of_user = (_entry.workspace_id == actor.workspace_id, _entry.user_id == user_id)
    await _end_entries(work, by, *of_user, user_id=actor.user_id)


async def end_entries_of_workspace(work: UnitOfWork, workspace_id: Id) -> None:
    """Complete all entries of a workspace that is gone."""
    await _end_entries(work, rules.CompletedBy.SYSTEM, _entry.workspace_id == workspace_id)


async def _end_entries(
    work: UnitOfWork,
    by: rules.CompletedBy,
    *these: sa.ColumnElement[bool],
    user_id: Id | None = None,
) -> None:
    found = sa.select(time_entry).where(*these, _entry.status.in_(rules.OPEN_ENTRY))
    rows = await work.rows(found.order_by(_entry.id).with_for_update(), of=TimeEntry)
    fields = TimerFields(work)
    for row in rows:
        await _end_entry(work, row, by, fields, user_id)
    await fields.write()


async def _end_entry(
    work: UnitOfWork,
    entry: TimeEntry,
    by: rules.CompletedBy,
    fields: TimerFields,
    user_id: Id | None,
) -> None:
    settled = await settle_entry(work, entry, work.now, fields)
    if settled.status not in rules.OPEN_ENTRY:
        return
    times = times_of(settled)
    ended = times.end(times.stop(max(work.now, times.started_at)))
    await complete_entry(work, settled, ended, by, fields, user_id=user_id)


purge_discarded = Retention(
    time_entry,
    _entry.closed_at,
    conditions=(_entry.status == rules.EntryStatus.DISCARDED,),
    order=(_entry.closed_at, _entry.id),
)
"""Entries that were discarded; what was completed stays for good."""

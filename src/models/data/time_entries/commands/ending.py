"""Ending entries that nobody ends by hand: their time is up, their user or workspace is gone."""

from datetime import datetime

from sqlalchemy import ColumnElement, select

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.data.time_entries.commands.timer_fields import TimerFields
from models.data.time_entries.commands.writes import complete, settle
from models.data.time_entries.lifecycle import TIME_ENTRIES
from models.data.time_entries.rows import times_of
from models.data.time_entries.rules.kinds import OPEN_ENTRY, CompletedBy
from models.data.time_entries.tables import TimeEntry, time_entry
from runtime.database import UnitOfWork
from runtime.families import Family

_entry = time_entry.c


async def end_when_due(work: UnitOfWork, entry_id: Id, now: datetime) -> TimeEntry | None:
    """The entry as it is at a moment: completed if its time is up; None when it is not open."""
    entry = await lifecycle.hold(work, TIME_ENTRIES, entry_id, of=TimeEntry)
    if entry is None:
        return None
    fields = TimerFields(work)
    settled = await settle(work, entry, now, fields, signalled=False)
    await fields.write()
    return settled


async def give_up(work: UnitOfWork, entry_id: Id) -> bool:
    """Complete an open entry that cannot be timed; False when it has ended before."""
    entry = await lifecycle.hold(work, TIME_ENTRIES, entry_id, of=TimeEntry)
    if entry is None:
        return False
    fields = TimerFields(work)
    await _end(work, entry, CompletedBy.SYSTEM, fields, None)
    await fields.write()
    return True


async def start_again(work: UnitOfWork, workspace_id: Id, entry_id: Id, restarts: int) -> None:
    """Have the execution of an open entry started anew."""
    await lifecycle.start(
        work,
        Family.TIMER_DUE,
        workspace_id,
        entry_id,
        {
            "summary": "Restarted by the reconciler",
            "resourceId": str(entry_id),
            "restarts": restarts,
        },
    )


async def member_removed(work: UnitOfWork, actor: Actor, user_id: Id) -> None:
    """Complete what runs, or stands still, of somebody who is no member any more."""
    by = CompletedBy.USER if user_id == actor.user_id else CompletedBy.ADMIN
    of_user = (_entry.workspace_id == actor.workspace_id, _entry.user_id == user_id)
    await _end_all(work, by, *of_user, user_id=actor.user_id)


async def workspace_deleted(work: UnitOfWork, workspace_id: Id) -> None:
    """Complete all entries of a workspace that is gone."""
    await _end_all(work, CompletedBy.SYSTEM, _entry.workspace_id == workspace_id)


async def _end_all(
    work: UnitOfWork, by: CompletedBy, *these: ColumnElement[bool], user_id: Id | None = None
) -> None:
    found = select(time_entry).where(*these, _entry.status.in_(OPEN_ENTRY))
    rows = await work.rows(found.order_by(_entry.id).with_for_update(), of=TimeEntry)
    fields = TimerFields(work)
    for row in rows:
        await _end(work, row, by, fields, user_id)
    await fields.write()


async def _end(
    work: UnitOfWork, entry: TimeEntry, by: CompletedBy, fields: TimerFields, user_id: Id | None
) -> None:
    settled = await settle(work, entry, work.now, fields)
    if settled.status not in OPEN_ENTRY:
        return
    times = times_of(settled)
    ended = times.end(times.stop(max(work.now, times.started_at)))
    await complete(work, settled, ended, by, fields, user_id=user_id)

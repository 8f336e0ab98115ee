"""Changing time entries: their clock, their times, what they are for; and deleting them."""

import contextlib
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select

from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.problems import an
from models.data.fields.queries import get_field
from models.data.time_entries.commands.locks import lock_times
from models.data.time_entries.commands.overlaps import refuse_overlap
from models.data.time_entries.commands.starting import make_room, of_target
from models.data.time_entries.commands.timer_fields import TimerFields
from models.data.time_entries.commands.writes import (
    complete,
    hold,
    is_timed,
    settle,
    signal_execution,
    write_entry,
)
from models.data.time_entries.queries.entries import get_entry
from models.data.time_entries.rows import times_of, values_of
from models.data.time_entries.rules.changes import moved, next_status
from models.data.time_entries.rules.kinds import (
    CompletedBy,
    EntryAction,
    EntryStatus,
    OnActive,
    TargetKind,
)
from models.data.time_entries.rules.times import Times, duration_of, milliseconds
from models.data.time_entries.shapes import DeletedTimeEntry, TimeEntryState, UpdateTimeEntry
from models.data.time_entries.tables import TimeEntry, time_entry
from models.data.time_entries.targets import check_by_hand, find_target
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError, ValidationError

_entry = time_entry.c
_NO_VALUES = {"action", "client_mutation_id", "expected_updated_at", "on_active"}
_FOREIGN = f"The credential lacks the scope {Scope.TIME_ENTRIES_MANAGE}: the entry is another's."


async def update_entry(
    work: UnitOfWork,
    actor: Actor,
    entry_id: Id,
    body: UpdateTimeEntry,
    expected_updated_at: datetime | None = None,
) -> TimeEntryState:
    """Move the clock of an entry, or correct it; what is so already is not written.

    Raises `NotFoundError` for the entry and its target, `DeniedError` for an entry of another,
    `ConflictError` when it was changed since, for a move its status does not allow and for time
    that is taken, `ValidationError` for times that cannot be.
    """
    fields = TimerFields(work)
    if body.action is EntryAction.RESUME or body.started_at or body.ended_at:
        await _stand_in_line(work, actor, entry_id)
    row = await hold(work, actor.workspace_id, entry_id)
    _check_own(actor, row)
    entry = await settle(work, row, work.now, fields)
    if body.client_mutation_id is None or entry.update_mutation_id != body.client_mutation_id:
        for read in (expected_updated_at, body.expected_updated_at):
            if read is not None and read != entry.updated_at:
                raise ConflictError("The time entry was changed since it was read.")
        await _write(work, actor, entry, body, fields)
    await fields.write()
    return await get_entry(work, actor.workspace_id, entry_id)


async def delete_entry(
    work: UnitOfWork, actor: Actor, entry_id: Id, expected_updated_at: datetime | None = None
) -> DeletedTimeEntry:
    """Delete an entry for good. Raises what `update_entry` raises."""
    entry = await hold(work, actor.workspace_id, entry_id)
    _check_own(actor, entry)
    if expected_updated_at is not None and expected_updated_at != entry.updated_at:
        raise ConflictError("The time entry was changed since it was read.")
    await work.execute(
        delete(time_entry).where(_entry.workspace_id == entry.workspace_id, _entry.id == entry.id)
    )
    if is_timed(entry) and entry.closed_at is None:
        await signal_execution(work, entry.workspace_id, entry.id)
    fields = TimerFields(work)
    fields.touch(entry)
    await fields.write()
    return DeletedTimeEntry(id=entry_id)


async def _stand_in_line(work: UnitOfWork, actor: Actor, entry_id: Id) -> None:
    """Take the lock of the user's times before the lock of the entry, as the start of one does."""
    this = (_entry.workspace_id == actor.workspace_id, _entry.id == entry_id)
    user_id = await work.scalar(select(_entry.user_id).where(*this))
    if user_id is not None:
        await lock_times(work, actor.workspace_id, user_id)


async def _write(
    work: UnitOfWork, actor: Actor, entry: TimeEntry, body: UpdateTimeEntry, fields: TimerFields
) -> None:
    """Write what the body says that is not so yet."""
    before = EntryStatus(entry.status)
    after = next_status(before, body.action)
    given = body.model_dump(exclude_unset=True, exclude=_NO_VALUES)
    if given and before is EntryStatus.DISCARDED:
        raise ConflictError("The time entry is discarded; nothing of it can be changed.")
    times = _edited(entry, moved(times_of(entry), before, after, work.now), body)
    values = {**_plain_values(given), **await _target_values(work, actor, entry, body)}
    if times != times_of(entry):
        values |= values_of(times)
        times.check(work.now)
        await _check_times(work, entry, times, body)
    if before is EntryStatus.COMPLETED and "started_at" in values:
        values["duration_ms"] = milliseconds(times.elapsed(work.now))
    if after is before and not any(values[key] != getattr(entry, key) for key in values):
        return
    values |= {"updated_by_user_id": actor.user_id, "update_mutation_id": body.client_mutation_id}
    if after is EntryStatus.ACTIVE and before is not after:
        on_active = body.on_active or OnActive.REPLACE
        await make_room(work, actor, work.now, on_active, fields, entry.user_id)
    if after is EntryStatus.COMPLETED and before is not after:
        by = CompletedBy.USER if entry.user_id == actor.user_id else CompletedBy.ADMIN
        await complete(work, entry, times, by, fields, user_id=actor.user_id, **values)
        return
    values["status"] = after.value
    if after is EntryStatus.DISCARDED and before is not after:
        values["closed_at"] = work.now
    written = await write_entry(work, entry, values, fields)
    await settle(work, written, work.now, fields)


def _edited(entry: TimeEntry, times: Times, body: UpdateTimeEntry) -> Times:
    """The times with what the body says of them. Raises `ValidationError`."""
    if body.ended_at is not None and times.ended_at is None:
        raise ValidationError.at("endedAt", "goes with the action complete")
    if body.ended_at is not None and entry.paused_at is not None:
        times = times_of(entry).end(body.ended_at)
    if "target_duration_ms" in body.model_fields_set:
        if body.target_duration_ms is None and is_timed(entry):
            raise ValidationError.at("targetDurationMs", f"is what {an(entry.mode)} lasts")
        times = replace(times, target=duration_of(body.target_duration_ms))
    return times.move(body.started_at, body.ended_at)


async def _check_times(
    work: UnitOfWork, entry: TimeEntry, times: Times, body: UpdateTimeEntry
) -> None:
    """Refuse moments given by hand where the field takes none, or other entries have the time."""
    if body.started_at is None and body.ended_at is None:
        return
    if entry.field_id is not None and entry.database_id is not None:
        with contextlib.suppress(NotFoundError):
            check_by_hand(
                await get_field(work, entry.workspace_id, entry.database_id, entry.field_id)
            )
    await refuse_overlap(work, entry.workspace_id, entry.user_id, entry.id, times)


def _plain_values(given: dict[str, Any]) -> dict[str, Any]:
    """Summary and sound; a sound has no null."""
    values = {"summary": given["summary"]} if "summary" in given else {}
    if given.get("sound_id") is not None:
        values["sound_id"] = given["sound_id"].value
    return values


async def _target_values(
    work: UnitOfWork, actor: Actor, entry: TimeEntry, body: UpdateTimeEntry
) -> dict[str, Any]:
    """Another target of the same kind, which has the field of the entry if that has one."""
    if body.target_id is None or body.target_id == entry.target_id:
        return {}
    kind = TargetKind(entry.target_kind)
    target = await find_target(work, actor, kind, body.target_id, None)
    values = of_target(target)
    if entry.field_id is None:
        return values
    if target.database_id != entry.database_id:
        raise ValidationError.at("targetId", "is in another database than the field of the entry")
    return values | {name: getattr(entry, name) for name in ("field_id", "field_label_snapshot")}


def _check_own(actor: Actor, entry: TimeEntry) -> None:
    if entry.user_id != actor.user_id and Scope.TIME_ENTRIES_MANAGE not in actor.scopes:
        raise DeniedError(_FOREIGN)

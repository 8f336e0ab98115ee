"""Starting, writing down, changing and deleting time entries, for targets the caller sees."""

import contextlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic_core import to_json

from models.content.items import queries as items
from models.core.access.rules import Actor, Level, Scope, level_on
from models.core.base import Deleted, Id
from models.core.problems import an
from models.data.fields.queries import get_field
from models.data.fields.rules.fields import FieldKind
from models.data.fields.shapes import FieldShape
from models.data.records import queries
from models.data.time_entries import queries as time_entry_queries
from models.data.time_entries import rules, shapes, writes
from models.data.time_entries.tables import TimeEntry, time_entry
from runtime import errors
from runtime.clock import wire_timestamp
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.postgresql.statements import lock_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A target, and the timer field of the record if one is meant.

    The title is None for the workspace, whose name is read by the statement that writes the entry.
    """

    kind: rules.TargetKind
    id: Id
    title: str | None = None
    item_id: Id | None = None
    database_id: Id | None = None
    field: FieldShape | None = None


async def find_target(
    work: UnitOfWork,
    actor: Actor,
    kind: rules.TargetKind,
    target_id: Id | None,
    field_id: Id | None,
) -> Target:
    """The target, and its field.

    Raises `NotFoundError` for what the actor does not see, `ValidationError` for a target without
    an id, and for a field of something else than a record or of another kind than timer.
    """
    if field_id is not None and kind is not rules.TargetKind.DATABASE_RECORD:
        raise errors.ValidationError.at("fieldId", "is for time spent on a record")
    if kind is rules.TargetKind.WORKSPACE:
        return _workspace_target(actor, target_id)
    if target_id is None:
        raise errors.ValidationError.at("targetId", f"must name the {kind.value.replace('_', ' ')}")
    if kind is rules.TargetKind.ITEM:
        return await _item_target(work, actor, target_id)
    return await _record_target(work, actor, target_id, field_id)


def _workspace_target(actor: Actor, target_id: Id | None) -> Target:
    if target_id not in {None, actor.workspace_id}:
        raise errors.NotFoundError("workspace")
    return Target(kind=rules.TargetKind.WORKSPACE, id=actor.workspace_id)


async def _item_target(work: UnitOfWork, actor: Actor, item_id: Id) -> Target:
    if await items.placement.level(work, actor, item_id) < Level.VIEW:
        raise errors.NotFoundError
    row = await items.find_item(work, actor.workspace_id, item_id)
    return Target(kind=rules.TargetKind.ITEM, id=item_id, title=row.title, item_id=item_id)


async def _record_target(
    work: UnitOfWork, actor: Actor, record_id: Id, field_id: Id | None
) -> Target:
    place = await queries.visible(work, [actor.workspace_id], record_id, actor.user_id)
    if place is None or level_on(place, actor.role) < Level.VIEW:
        raise errors.NotFoundError("record")
    row = await queries.record_subject(work, actor.workspace_id, record_id)
    field = None
    if field_id is not None:
        field = await get_field(work, actor.workspace_id, row.database_id, field_id)
        if field.kind is not FieldKind.TIMER:
            raise errors.ValidationError.at("fieldId", "must be a timer field")
    return Target(
        kind=rules.TargetKind.DATABASE_RECORD,
        id=record_id,
        title=row.title,
        item_id=place.item_id,
        database_id=row.database_id,
        field=field,
    )


def check_by_hand(field: FieldShape | None) -> None:
    """Raise `ValidationError` for a field whose time is taken by its clock alone."""
    if field is not None and not field.settings.get("allowManual", True):
        raise errors.ValidationError.at("fieldId", "only takes time from its timer")


async def lock_times(work: UnitOfWork, workspace_id: Id, user_id: Id) -> None:
    """Have others who make room or write times down for this user wait for the transaction."""
    place = f"time-entries/{workspace_id}/{user_id}"
    await lock_name(work, place)


_entry = time_entry.c


async def refuse_overlap(
    work: UnitOfWork, workspace_id: Id, user_id: Id, entry_id: Id, times: rules.Times
) -> None:
    """Raise `ConflictError` when other entries of a user count a part of this time.

    The one that runs is none of them for an entry that begins after it and runs on: it makes room.
    Until the transaction ends no other one writes times of this user.
    """
    await lock_times(work, workspace_id, user_id)
    end = times.stop(work.now)
    now = sa.literal(work.now, _entry.started_at.type)
    makes_room = sa.and_(
        _entry.status == rules.EntryStatus.ACTIVE, _entry.started_at <= times.started_at
    )
    met = await work.first(
        sa.select(_entry.started_at, _entry.target_title_snapshot)
        .where(
            _entry.workspace_id == workspace_id,
            _entry.user_id == user_id,
            _entry.id != entry_id,
            _entry.status != rules.EntryStatus.DISCARDED,
            _entry.deleted_at.is_(None),
            _entry.started_at < end,
            sa.func.coalesce(_entry.ended_at, now) > times.started_at,
            time_entry_queries.worked(work.now).op("&&")(
                time_entry_queries.spans_of(times, work.now)
            ),
            *([] if times.ended_at else [sa.not_(makes_room)]),
        )
        .order_by(_entry.started_at)
        .limit(1)
    )
    if met is not None:
        began = wire_timestamp(met.started_at)
        raise errors.ConflictError(f"This time overlaps the entry that started at {began}.")


_UNREPEATED = {"client_mutation_id", "on_active"}


async def start_entry(
    work: UnitOfWork, actor: Actor, entry_id: Id, body: shapes.StartTimeEntry
) -> shapes.TimeEntryState:
    """Start the clock of a new entry, or write one down that is over; once for each mutation.

    Raises `NotFoundError` for a target the actor does not see, `ValidationError` for times that
    cannot be, `ConflictError` for time that is taken and for a running entry that is to continue,
    and `ConflictingMutationError` for a `clientMutationId` that was used for another input.
    """
    target = await find_target(work, actor, body.target_kind, body.target_id, body.field_id)
    times = _times(body, work.now)
    by_hand = times.ended_at is not None or body.started_at is not None
    if by_hand:
        check_by_hand(target.field)
    fields = writes.TimerFields(work)
    values = {**_values(work, actor, entry_id, body), **of_target(target), **_of_times(times, work)}
    del values["pauses"]
    if by_hand and await _repeated(work, actor, body, values) is None:
        await refuse_overlap(work, actor.workspace_id, actor.user_id, entry_id, times)
    row = await _insert(work, actor, body, values, fields)
    await fields.write()
    return time_entry_queries.state_of(row, work.now)


async def _insert(
    work: UnitOfWork,
    actor: Actor,
    body: shapes.StartTimeEntry,
    values: dict[str, Any],
    fields: writes.TimerFields,
) -> TimeEntry:
    """Insert the entry once there is room; from the second turn on writers stand in line."""
    while (row := await writes.insert_entry(work, values, fields)) is None:
        repeated = await _repeated(work, actor, body, values)
        if repeated is not None:
            return repeated
        await make_room(work, actor, values["started_at"], body.on_active, fields)
    return row


async def make_room(
    work: UnitOfWork,
    actor: Actor,
    started_at: datetime,
    on_active: rules.OnActive,
    fields: writes.TimerFields,
    user_id: Id | None = None,
) -> None:
    """Complete the running entry of a user, the actor's own unless said, or refuse to.

    It ends where the one that takes its place begins. Raises `ConflictError`.
    """
    await lock_times(work, actor.workspace_id, user_id or actor.user_id)
    running = (
        sa.select(time_entry)
        .where(
            _entry.workspace_id == actor.workspace_id,
            _entry.user_id == (user_id or actor.user_id),
            _entry.status == rules.EntryStatus.ACTIVE,
        )
        .with_for_update()
    )
    row = await work.first(running, of=TimeEntry)
    if row is None:
        return
    entry = await writes.settle_entry(work, row, work.now, fields)
    if entry.status != rules.EntryStatus.ACTIVE:
        return
    if on_active is rules.OnActive.REJECT:
        raise errors.ConflictError(
            "Another time entry is running; complete it first, or replace it."
        )
    end = max(entry.started_at, min(started_at, work.now))
    times = time_entry_queries.times_of(entry).end(end)
    await writes.complete_entry(
        work, entry, times, rules.CompletedBy.SYSTEM, fields, user_id=actor.user_id
    )


async def _repeated(
    work: UnitOfWork, actor: Actor, body: shapes.StartTimeEntry, values: dict[str, Any]
) -> TimeEntry | None:
    """The entry that this mutation has made before."""
    if body.client_mutation_id is None:
        return None
    own = (_entry.user_id == actor.user_id, _entry.client_mutation_id == body.client_mutation_id)
    entry = await work.first(
        time_entry_queries.named_entries(actor.workspace_id).where(*own), of=TimeEntry
    )
    if entry is not None and entry.mutation_digest != values["mutation_digest"]:
        raise errors.ConflictingMutationError(
            "This clientMutationId was used with another input. Choose a new one."
        )
    return entry


def _times(body: shapes.StartTimeEntry, now: datetime) -> rules.Times:
    """The times that the body says. Raises `ValidationError` for what does not go together."""
    mode, written = _mode(body), body.ended_at is not None
    if body.started_at is None and written:
        raise errors.ValidationError.at("startedAt", "is required with endedAt")
    if not written and (mode is rules.EntryMode.FIXED or body.source is rules.EntrySource.MANUAL):
        raise errors.ValidationError.at("endedAt", "is required for time entered manually")
    if written and body.source is rules.EntrySource.TIMER:
        raise errors.ValidationError.at("endedAt", "cannot be set when a timer is started")
    target = rules.duration_of(body.target_duration_ms)
    if target is None and mode is rules.EntryMode.POMODORO:
        target = rules.POMODORO
    if target is None and mode in rules.TIMED_MODES:
        raise errors.ValidationError.at("targetDurationMs", "is required for a countdown")
    times = rules.Times(
        started_at=body.started_at or now, mode=mode, target=target, ended_at=body.ended_at
    )
    times.check(now)
    return times


def _mode(body: shapes.StartTimeEntry) -> rules.EntryMode:
    return body.mode or (
        rules.EntryMode.STOPWATCH if body.ended_at is None else rules.EntryMode.FIXED
    )


def _values(
    work: UnitOfWork, actor: Actor, entry_id: Id, body: shapes.StartTimeEntry
) -> dict[str, Any]:
    request = body.model_dump(mode="json", by_alias=True, exclude=_UNREPEATED)
    source = rules.EntrySource.TIMER if body.ended_at is None else rules.EntrySource.MANUAL
    return {
        "id": entry_id,
        "workspace_id": actor.workspace_id,
        "user_id": actor.user_id,
        "source": (body.source or source).value,
        "mode": _mode(body).value,
        "summary": body.summary,
        "sound_id": (body.sound_id or rules.EntrySound.NONE).value,
        "client_mutation_id": body.client_mutation_id,
        "mutation_digest": None
        if body.client_mutation_id is None
        else fingerprint(to_json(request)),
        "created_by_user_id": actor.user_id,
        "updated_by_user_id": actor.user_id,
        "created_at": work.now,
        "updated_at": work.now,
    }


def of_target(target: Target) -> dict[str, Any]:
    """The columns that say what an entry is for."""
    return {
        "target_kind": target.kind.value,
        "target_id": target.id,
        "target_title_snapshot": target.title,
        "item_id": target.item_id,
        "database_id": target.database_id,
        "field_id": None if target.field is None else target.field.id,
        "field_label_snapshot": None if target.field is None else target.field.label,
    }


def _of_times(times: rules.Times, work: UnitOfWork) -> dict[str, Any]:
    if times.ended_at is None:
        return {**time_entry_queries.values_of(times), "status": rules.EntryStatus.ACTIVE.value}
    return {
        **time_entry_queries.values_of(times),
        "status": rules.EntryStatus.COMPLETED.value,
        "duration_ms": rules.milliseconds(times.elapsed(work.now)),
        "completed_by": rules.CompletedBy.USER.value,
        "closed_at": work.now,
    }


_NO_VALUES = {"action", "client_mutation_id", "expected_updated_at", "on_active"}
_FOREIGN = f"The credential lacks the scope {Scope.TIME_ENTRIES_MANAGE}: the entry is not yours."


async def update_entry(
    work: UnitOfWork,
    actor: Actor,
    entry_id: Id,
    body: shapes.UpdateTimeEntry,
    expected_updated_at: datetime | None = None,
) -> shapes.TimeEntryState:
    """Move the clock of an entry, or correct it; what is so already is not written.

    Raises `NotFoundError` for the entry and its target, `DeniedError` for an entry of another,
    `ConflictError` when it was changed since, for a move its status does not allow and for time
    that is taken, `ValidationError` for times that cannot be.
    """
    fields = writes.TimerFields(work)
    if body.action is rules.EntryAction.RESUME or body.started_at or body.ended_at:
        await _stand_in_line(work, actor, entry_id)
    row = await writes.hold_entry(work, actor.workspace_id, entry_id)
    _check_own(actor, row)
    entry = await writes.settle_entry(work, row, work.now, fields)
    if body.client_mutation_id is None or entry.update_mutation_id != body.client_mutation_id:
        for read in (expected_updated_at, body.expected_updated_at):
            if read is not None and read != entry.updated_at:
                raise errors.ConflictError("The time entry was changed since it was read.")
        await _write_changes(work, actor, entry, body, fields)
    await fields.write()
    return await time_entry_queries.get_entry(work, actor.workspace_id, entry_id)


async def delete_entry(
    work: UnitOfWork, actor: Actor, entry_id: Id, expected_updated_at: datetime | None = None
) -> Deleted:
    """Delete an entry for good. Raises what `update_entry` raises."""
    entry = await writes.hold_entry(work, actor.workspace_id, entry_id)
    _check_own(actor, entry)
    if expected_updated_at is not None and expected_updated_at != entry.updated_at:
        raise errors.ConflictError("The time entry was changed since it was read.")
    await work.execute(
        sa.delete(time_entry).where(
            _entry.workspace_id == entry.workspace_id, _entry.id == entry.id
        )
    )
    if writes.is_timed(entry) and entry.closed_at is None:
        await writes.signal_execution(work, entry.workspace_id, entry.id)
    fields = writes.TimerFields(work)
    fields.touch(entry)
    await fields.write()
    return Deleted(id=entry_id)


async def _stand_in_line(work: UnitOfWork, actor: Actor, entry_id: Id) -> None:
    """Take the lock of the user's times before the lock of the entry, as the start of one does."""
    this = (_entry.workspace_id == actor.workspace_id, _entry.id == entry_id)
    user_id = await work.scalar(sa.select(_entry.user_id).where(*this))
    if user_id is not None:
        await lock_times(work, actor.workspace_id, user_id)


async def _write_changes(
    work: UnitOfWork,
    actor: Actor,
    entry: TimeEntry,
    body: shapes.UpdateTimeEntry,
    fields: writes.TimerFields,
) -> None:
    """Write what the body says that is not so yet."""
    before = rules.EntryStatus(entry.status)
    after = rules.next_status(before, body.action)
    changes = body.model_dump(exclude_unset=True, exclude=_NO_VALUES)
    if changes and before is rules.EntryStatus.DISCARDED:
        raise errors.ConflictError("The time entry is discarded and cannot be changed.")
    times = _edited(
        entry, rules.moved_times(time_entry_queries.times_of(entry), before, after, work.now), body
    )
    values = {**_plain_values(changes), **await _target_values(work, actor, entry, body)}
    if times != time_entry_queries.times_of(entry):
        values |= time_entry_queries.values_of(times)
        times.check(work.now)
        await _check_times(work, entry, times, body)
    if before is rules.EntryStatus.COMPLETED and "started_at" in values:
        values["duration_ms"] = rules.milliseconds(times.elapsed(work.now))
    if after is before and not any(values[key] != getattr(entry, key) for key in values):
        return
    values |= {"updated_by_user_id": actor.user_id, "update_mutation_id": body.client_mutation_id}
    if after is rules.EntryStatus.ACTIVE and before is not after:
        on_active = body.on_active or rules.OnActive.REPLACE
        await make_room(work, actor, work.now, on_active, fields, entry.user_id)
    if after is rules.EntryStatus.COMPLETED and before is not after:
        by = rules.CompletedBy.USER if entry.user_id == actor.user_id else rules.CompletedBy.ADMIN
        await writes.complete_entry(work, entry, times, by, fields, user_id=actor.user_id, **values)
        return
    values["status"] = after.value
    if after is rules.EntryStatus.DISCARDED and before is not after:
        values["closed_at"] = work.now
    written = await writes.write_entry(work, entry, values, fields)
    await writes.settle_entry(work, written, work.now, fields)


def _edited(entry: TimeEntry, times: rules.Times, body: shapes.UpdateTimeEntry) -> rules.Times:
    """The times with what the body says of them. Raises `ValidationError`."""
    if body.ended_at is not None and times.ended_at is None:
        raise errors.ValidationError.at("endedAt", "is only for the action complete")
    if body.ended_at is not None and entry.paused_at is not None:
        times = time_entry_queries.times_of(entry).end(body.ended_at)
    if "target_duration_ms" in body.model_fields_set:
        if body.target_duration_ms is None and writes.is_timed(entry):
            raise errors.ValidationError.at("targetDurationMs", f"is required for {an(entry.mode)}")
        times = replace(times, target=rules.duration_of(body.target_duration_ms))
    return times.move(body.started_at, body.ended_at)


async def _check_times(
    work: UnitOfWork, entry: TimeEntry, times: rules.Times, body: shapes.UpdateTimeEntry
) -> None:
    """Refuse moments given by hand where the field takes none, or other entries have the time."""
    if body.started_at is None and body.ended_at is None:
        return
    if entry.field_id is not None and entry.database_id is not None:
        with contextlib.suppress(errors.NotFoundError):
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
    work: UnitOfWork, actor: Actor, entry: TimeEntry, body: shapes.UpdateTimeEntry
) -> dict[str, Any]:
    """Another target of the same kind, which has the field of the entry if that has one."""
    if body.target_id is None or body.target_id == entry.target_id:
        return {}
    kind = rules.TargetKind(entry.target_kind)
    target = await find_target(work, actor, kind, body.target_id, None)
    values = of_target(target)
    if entry.field_id is None:
        return values
    if target.database_id != entry.database_id:
        raise errors.ValidationError.at(
            "targetId", "is in another database than the field of the entry"
        )
    return values | {name: getattr(entry, name) for name in ("field_id", "field_label_snapshot")}


def _check_own(actor: Actor, entry: TimeEntry) -> None:
    if entry.user_id != actor.user_id and Scope.TIME_ENTRIES_MANAGE not in actor.scopes:
        raise errors.DeniedError(_FOREIGN)

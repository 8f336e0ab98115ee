"""Starting time entries, and writing down entries that are over."""

from datetime import datetime
from typing import Any

from pydantic_core import to_json
from sqlalchemy import select

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.time_entries.commands.locks import lock_times
from models.data.time_entries.commands.overlaps import refuse_overlap
from models.data.time_entries.commands.timer_fields import TimerFields
from models.data.time_entries.commands.writes import complete, insert_entry, settle
from models.data.time_entries.queries.entries import named_entries, state_of
from models.data.time_entries.rows import times_of, values_of
from models.data.time_entries.rules.kinds import (
    TIMED_MODES,
    CompletedBy,
    EntryMode,
    EntrySound,
    EntrySource,
    EntryStatus,
    OnActive,
)
from models.data.time_entries.rules.times import POMODORO, Times, duration_of, milliseconds
from models.data.time_entries.shapes import StartTimeEntry, TimeEntryState
from models.data.time_entries.tables import TimeEntry, time_entry
from models.data.time_entries.targets import Target, check_by_hand, find_target
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ConflictingMutationError, ValidationError

_entry = time_entry.c
_UNREPEATED = {"client_mutation_id", "on_active"}


async def start_entry(
    work: UnitOfWork, actor: Actor, entry_id: Id, body: StartTimeEntry
) -> TimeEntryState:
    """Start the clock of a new entry, or write one down that is over; once for each mutation.

    Raises `NotFoundError` for a target the actor does not see, `ValidationError` for times that
    cannot be, `ConflictError` for time that is taken and for a running entry that is to go on, and
    `ConflictingMutationError` for a `clientMutationId` that was used for another input.
    """
    target = await find_target(work, actor, body.target_kind, body.target_id, body.field_id)
    times = _times(body, work.now)
    by_hand = times.ended_at is not None or body.started_at is not None
    if by_hand:
        check_by_hand(target.field)
    fields = TimerFields(work)
    values = {**_values(work, actor, entry_id, body), **of_target(target), **_of_times(times, work)}
    del values["pauses"]
    if by_hand and await _repeated(work, actor, body, values) is None:
        await refuse_overlap(work, actor.workspace_id, actor.user_id, entry_id, times)
    row = await _insert(work, actor, body, values, fields)
    await fields.write()
    return state_of(row, work.now)


async def _insert(
    work: UnitOfWork,
    actor: Actor,
    body: StartTimeEntry,
    values: dict[str, Any],
    fields: TimerFields,
) -> TimeEntry:
    """Insert the entry once there is room; from the second turn on writers stand in line."""
    while (row := await insert_entry(work, values, fields)) is None:
        repeated = await _repeated(work, actor, body, values)
        if repeated is not None:
            return repeated
        await make_room(work, actor, values["started_at"], body.on_active, fields)
    return row


async def make_room(
    work: UnitOfWork,
    actor: Actor,
    started_at: datetime,
    on_active: OnActive,
    fields: TimerFields,
    user_id: Id | None = None,
) -> None:
    """Complete the running entry of a user, the actor's own unless said, or refuse to.

    It ends where the one that takes its place begins. Raises `ConflictError`.
    """
    await lock_times(work, actor.workspace_id, user_id or actor.user_id)
    running = (
        select(time_entry)
        .where(
            _entry.workspace_id == actor.workspace_id,
            _entry.user_id == (user_id or actor.user_id),
            _entry.status == EntryStatus.ACTIVE,
        )
        .with_for_update()
    )
    row = await work.first(running, of=TimeEntry)
    if row is None:
        return
    entry = await settle(work, row, work.now, fields)
    if entry.status != EntryStatus.ACTIVE:
        return
    if on_active is OnActive.REJECT:
        raise ConflictError("Another time entry is running; complete it first, or replace it.")
    end = max(entry.started_at, min(started_at, work.now))
    times = times_of(entry).end(end)
    await complete(work, entry, times, CompletedBy.SYSTEM, fields, user_id=actor.user_id)


async def _repeated(
    work: UnitOfWork, actor: Actor, body: StartTimeEntry, values: dict[str, Any]
) -> TimeEntry | None:
    """The entry that this mutation has made before."""
    if body.client_mutation_id is None:
        return None
    own = (_entry.user_id == actor.user_id, _entry.client_mutation_id == body.client_mutation_id)
    found = await work.first(named_entries(actor.workspace_id).where(*own), of=TimeEntry)
    if found is not None and found.mutation_digest != values["mutation_digest"]:
        raise ConflictingMutationError(
            "This clientMutationId was used with another input. Choose a new one."
        )
    return found


def _times(body: StartTimeEntry, now: datetime) -> Times:
    """The times that the body says. Raises `ValidationError` for what does not go together."""
    mode, written = _mode(body), body.ended_at is not None
    if body.started_at is None and written:
        raise ValidationError.at("startedAt", "must be given with endedAt")
    if not written and (mode is EntryMode.FIXED or body.source is EntrySource.MANUAL):
        raise ValidationError.at("endedAt", "must be given for time that is written down")
    if written and body.source is EntrySource.TIMER:
        raise ValidationError.at("endedAt", "is not known when a timer is started")
    target = duration_of(body.target_duration_ms)
    if target is None and mode is EntryMode.POMODORO:
        target = POMODORO
    if target is None and mode in TIMED_MODES:
        raise ValidationError.at("targetDurationMs", "must be given for a countdown")
    times = Times(
        started_at=body.started_at or now, mode=mode, target=target, ended_at=body.ended_at
    )
    times.check(now)
    return times


def _mode(body: StartTimeEntry) -> EntryMode:
    return body.mode or (EntryMode.STOPWATCH if body.ended_at is None else EntryMode.FIXED)


def _values(work: UnitOfWork, actor: Actor, entry_id: Id, body: StartTimeEntry) -> dict[str, Any]:
    request = body.model_dump(mode="json", by_alias=True, exclude=_UNREPEATED)
    source = EntrySource.TIMER if body.ended_at is None else EntrySource.MANUAL
    return {
        "id": entry_id,
        "workspace_id": actor.workspace_id,
        "user_id": actor.user_id,
        "source": (body.source or source).value,
        "mode": _mode(body).value,
        "summary": body.summary,
        "sound_id": (body.sound_id or EntrySound.NONE).value,
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


def _of_times(times: Times, work: UnitOfWork) -> dict[str, Any]:
    if times.ended_at is None:
        return {**values_of(times), "status": EntryStatus.ACTIVE.value}
    return {
        **values_of(times),
        "status": EntryStatus.COMPLETED.value,
        "duration_ms": milliseconds(times.elapsed(work.now)),
        "completed_by": CompletedBy.USER.value,
        "closed_at": work.now,
    }

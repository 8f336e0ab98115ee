"""Pausing, resuming, and the release of what rests, a part in each transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.core.pauses.intents import Pause, RestingIntent, gather_starts, pause, resting_intent
from models.core.pauses.rules import (
    CHUNK,
    CROWDED_PAUSE,
    PauseCause,
    PauseSubject,
    chunk_of,
    next_holder,
    seconds_after,
)
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.processes.fault_injection import FaultPoint, inject_fault
from runtime.temporal.families import Family
from runtime.temporal.outbox import MOST_WAITING_STARTS, outbox, waiting_starts


@dataclass(frozen=True, slots=True)
class Paused:
    """The subject of a pause, and its cause."""

    workspace_id: Id
    kind: PauseSubject
    subject_id: Id
    cause: PauseCause = PauseCause.PERSON


async def begin_pause(
    work: UnitOfWork, subject: Paused, reason: str, user_id: Id | None = None
) -> Pause | None:
    """Pause a subject, also one that is being resumed; None when it is paused already.

    Starts that no relay has claimed are brought to rest.
    """
    values = {
        "reason": reason,
        "paused_by_user_id": user_id,
        "paused_at": work.now,
        # What is accepted at this moment is brought to rest a moment later.
        "due_at": work.now,
    }
    statement = upsert(pause).values(
        id=new_id(),
        workspace_id=subject.workspace_id,
        subject_kind=subject.kind.value,
        subject_id=subject.subject_id,
        cause=subject.cause.value,
        **values,
    )
    row = await work.first(
        statement.on_conflict_do_update(
            index_elements=["subject_id", "cause"],
            set_={**values, "resumed_at": None, "rate": None},
            where=pause.c.resumed_at.is_not(None),
        ).returning(pause),
        of=Pause,
    )
    if row is not None:
        await gather_starts(work, row)
    return row


async def resume(work: UnitOfWork, subject: Paused, rate: int | None = None) -> bool:
    """Have what rests started, at a rate or at once; False when the subject was not paused.

    A worker does it. Of a subject that is being resumed, the rate changes.
    """
    of_subject = (
        pause.c.workspace_id == subject.workspace_id,
        pause.c.subject_id == subject.subject_id,
        pause.c.cause == subject.cause,
    )
    work.notify_workers = True
    again = sa.update(pause).where(*of_subject, pause.c.resumed_at.is_not(None))
    await work.execute(again.values(rate=rate, due_at=work.now))
    resumed = sa.update(pause).where(*of_subject, pause.c.resumed_at.is_(None))
    due = {"resumed_at": work.now, "rate": rate, "due_at": work.now}
    return (await work.execute(resumed.values(**due))).rowcount > 0


PAUSE_DUE = sa.exists().where(pause.c.due_at <= sa.func.now())

_resting = resting_intent.c


async def attend_next_pause(work: UnitOfWork) -> bool:
    """Do the next part of one pause that is due; False when none is.

    Each turn is one transaction about one pause that no other worker holds. What it releases joins
    the outbox in it, so each start is released once, after any crash.
    """
    due = (
        sa.select(pause)
        .where(pause.c.due_at <= work.now)
        .order_by(pause.c.due_at)
        .limit(1)
        # Another process releases a locked pause. Without the key, because resting intents
        # reference it.
        .with_for_update(skip_locked=True, key_share=True)
    )
    row = await work.first(due, of=Pause)
    if row is None:
        return False
    if row.resumed_at is None:
        gathered = await gather_starts(work, row)
        await _due_again(work, row.id, 0 if gathered == CHUNK else None)
    else:
        await _release_next(work, row)
    return True


async def _release_next(work: UnitOfWork, row: Pause) -> None:
    waiting = await waiting_starts(
        work, row.workspace_id, Family.AUTOMATION_RUN, MOST_WAITING_STARTS
    )
    if waiting >= MOST_WAITING_STARTS:
        await _due_again(work, row.id, CROWDED_PAUSE)
        return
    looked_at, starts = await release(work, row, chunk_of(row.rate))
    if looked_at == 0:
        await _end_pause(work, row)
        return
    inject_fault(FaultPoint.AFTER_RELEASE_BEFORE_COMMIT, row.id)
    await _due_again(work, row.id, seconds_after(row.rate, starts))


async def _due_again(work: UnitOfWork, pause_id: Id, seconds: float | None) -> None:
    due = None if seconds is None else work.now + timedelta(seconds=seconds)
    await work.execute(sa.update(pause).where(pause.c.id == pause_id).values(due_at=due))


async def _end_pause(work: UnitOfWork, row: Pause) -> None:
    """Forget a pause under which nothing rests; what is accepted meanwhile waits for that."""
    await work.execute(sa.select(pause.c.id).where(pause.c.id == row.id).with_for_update())
    nothing = ~sa.exists().where(_resting.pause_id == row.id)
    ended = await work.execute(sa.delete(pause).where(pause.c.id == row.id, nothing))
    if ended.rowcount == 0:
        await _due_again(work, row.id, 0)


async def release(work: UnitOfWork, row: Pause, count: int) -> tuple[int, int]:
    """Let go of some that rest under a held pause, the oldest first.

    Returns their number, and the number that starts: the others are queued under another pause.
    """
    chunk = await work.rows(
        _oldest_resting(row.id).limit(count).with_for_update(), of=RestingIntent
    )
    return len(chunk), len(await _let_go(work, row, chunk))


async def release_oldest(work: UnitOfWork, subject_id: Id, cause: PauseCause) -> Id | None:
    """Start the work that was queued longest under a pause that continues; None when none may."""
    held = sa.select(pause).where(pause.c.subject_id == subject_id, pause.c.cause == cause)
    row = await work.first(held.with_for_update(key_share=True), of=Pause)
    first = (
        None
        if row is None
        else await work.first(_oldest_resting(row.id).limit(1), of=RestingIntent)
    )
    if row is None or first is None:
        return None
    all_of_it = _oldest_resting(row.id).where(_resting.work_id == first.work_id)
    chunk = await work.rows(all_of_it.with_for_update(), of=RestingIntent)
    return first.work_id if await _let_go(work, row, chunk) else None


def _oldest_resting(pause_id: Id) -> sa.Select[Any]:
    order = (_resting.accepted_at, _resting.work_id, _resting.intent)
    return sa.select(resting_intent).where(_resting.pause_id == pause_id).order_by(*order)


async def _let_go(
    work: UnitOfWork, row: Pause, chunk: Sequence[RestingIntent]
) -> Sequence[RestingIntent]:
    """Move what rests to the outbox, or to another pause of it, and return what starts."""
    others = await _other_pauses(work, row, chunk)
    starts: list[RestingIntent] = []
    rests_on: dict[Id, list[RestingIntent]] = {}
    for one in chunk:
        theirs = [other for other in others if other.subject_id in one.subject_ids]
        holder = next_holder(row, theirs)
        (starts if holder is None else rests_on.setdefault(holder.id, [])).append(one)
    for holder_id, ones in rests_on.items():
        await work.execute(sa.update(resting_intent).where(_among(ones)).values(pause_id=holder_id))
    await _join_outbox(work, starts)
    return starts


async def _other_pauses(
    work: UnitOfWork, row: Pause, chunk: Sequence[RestingIntent]
) -> Sequence[Pause]:
    """The other pauses of what rests; none of them ends meanwhile."""
    subject_ids = {subject_id for one in chunk for subject_id in one.subject_ids}
    if not subject_ids:
        return ()
    statement = sa.select(pause).where(
        pause.c.workspace_id == row.workspace_id,
        pause.c.subject_id.in_(sorted(subject_ids)),
        pause.c.id != row.id,
    )
    return await work.rows(statement.with_for_update(read=True, key_share=True), of=Pause)


async def _join_outbox(work: UnitOfWork, starts: Sequence[RestingIntent]) -> None:
    """Move intents to the outbox, as old as they are."""
    if not starts:
        return
    work.notify_workers = True
    joining = sa.delete(resting_intent).where(_among(starts)).returning(*_resting).cte("joining")
    values: dict[str, Any] = {
        "workspace_id": joining.c.workspace_id,
        "intent": joining.c.intent,
        "family": joining.c.family,
        "subject_id": joining.c.work_id,
        "request": joining.c.request,
        "created_at": joining.c.accepted_at,
        "attempts": sa.literal(0),
    }
    rows = sa.select(*values.values()).order_by(joining.c.accepted_at, joining.c.work_id)
    await work.execute(sa.insert(outbox).from_select(list(values), rows))


def _among(ones: Sequence[RestingIntent]) -> sa.ColumnElement[bool]:
    return sa.tuple_(_resting.work_id, _resting.intent).in_(
        [(one.work_id, one.intent) for one in ones]
    )

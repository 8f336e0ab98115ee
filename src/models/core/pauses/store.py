"""Pauses: on the wire, read with what rests under them, begun, resumed and released.

What rests is released a part in each transaction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id, Input, JsonObject, Moment, Shape, example
from models.core.openapi import FLAG, ID, MOMENT, TEXT, object_of
from models.core.pauses import rules
from models.core.pauses.intents import Pause, RestingIntent, gather_starts, pause, resting_intent
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.processes.fault_injection import FaultPoint, inject_fault
from runtime.temporal.outbox import MOST_WAITING_STARTS, outbox, waiting_starts
from runtime.temporal.workflow_kinds import WorkflowKind

Rate = Annotated[int, Field(ge=1, le=rules.MAX_RATE)]


class PauseWork(Input):
    """Body of pause. The `reason` is shown with everything that is queued."""

    model_config = example({"reason": "The shop is being moved."})

    reason: Annotated[str, Field(max_length=1_000)] = ""


class ResumeWork(Input):
    """Body of resume: `rate` starts a minute, or all at once without it."""

    model_config = example({"rate": 600})

    rate: Rate | None = None


class PauseShape(Shape):
    """The pause of a resource, and the number of queued starts, up to 10,000.

    While `resuming`, queued starts are started, and new ones are added at the end. While `running`,
    there are no other keys.
    """

    state: rules.PauseState
    resting: int = 0
    reason: str | None = None
    paused_by_user_id: Id | None = None
    paused_at: Moment | None = None
    resumed_at: Moment | None = None
    rate: int | None = None


class WaitKind(StrEnum):
    """The kind of a `waitingFor`."""

    PAUSED = "paused"
    LIMITED = "limited"


class WaitCause(StrEnum):
    """The cause of a wait that is `limited`."""

    LIMIT = "limit"
    ANSWER = "answer"
    """An answer of the host has asked for it, by `Retry-After`."""


WAITING_FOR = object_of(
    "kind subject cause since",
    kind=TEXT,
    subject=TEXT,
    subjectId=ID,
    host=TEXT,
    cause=TEXT,
    reason=TEXT,
    since=MOMENT,
    until=MOMENT,
    resuming=FLAG,
)
"""The schema of `waitingFor`: the pause or the limit that holds a piece of work up.

A pause names its subject by `subjectId`, and has `reason` and `resuming`. A limit names a `host`
or a connection; `until` is the moment that the call has been given.
"""


MOST_COUNTED = 10_000
"""The number up to which what rests is counted."""

_resting = resting_intent.c


class Rest(Protocol):
    """The pause under which a piece of work rests."""

    work_id: Id
    subject_kind: str
    subject_id: Id
    cause: str
    reason: str
    paused_at: datetime
    resumed_at: datetime | None


def waiting_for(rest: Rest) -> JsonObject:
    """The `waitingFor` of work that a pause holds up."""
    return {
        "kind": WaitKind.PAUSED,
        "subject": rest.subject_kind,
        "subjectId": str(rest.subject_id),
        "cause": rest.cause,
        "reason": rest.reason,
        "since": wire_timestamp(rest.paused_at),
        "resuming": rest.resumed_at is not None,
    }


async def rests_of(
    work: UnitOfWork, workspace_id: Id, work_ids: Collection[Id]
) -> Mapping[Id, Rest]:
    """The pauses under which work rests, by its id."""
    if not work_ids:
        return {}
    columns = (
        pause.c.subject_kind,
        pause.c.subject_id,
        pause.c.cause,
        pause.c.reason,
        pause.c.paused_at,
        pause.c.resumed_at,
    )
    rows = await work.rows(
        sa.select(_resting.work_id, *columns)
        .join(pause, pause.c.id == _resting.pause_id)
        .where(
            _resting.workspace_id == workspace_id,
            _resting.work_id.in_(sorted(work_ids)),
        ),
        of=Rest,
    )
    return {row.work_id: row for row in rows}


async def pauses_of(
    work: UnitOfWork, workspace_id: Id, subject_ids: Collection[Id]
) -> Mapping[tuple[Id, rules.PauseCause], Pause]:
    rows = await work.rows(
        sa.select(pause).where(
            pause.c.workspace_id == workspace_id, pause.c.subject_id.in_(sorted(subject_ids))
        ),
        of=Pause,
    )
    return {(row.subject_id, rules.PauseCause(row.cause)): row for row in rows}


async def answer(
    work: UnitOfWork,
    workspace_id: Id,
    subject_id: Id,
    cause: rules.PauseCause = rules.PauseCause.PERSON,
) -> PauseShape:
    """The pause of a subject, and how much rests under it."""
    row = (await pauses_of(work, workspace_id, [subject_id])).get((subject_id, cause))
    if row is None:
        return PauseShape(state=rules.PauseState.RUNNING)
    return shape_of(row, await resting_under(work, row.id))


def shape_of(row: Pause, resting: int) -> PauseShape:
    """A pause on the wire."""
    return PauseShape(
        state=rules.PauseState.PAUSED if row.resumed_at is None else rules.PauseState.RESUMING,
        reason=row.reason,
        paused_by_user_id=row.paused_by_user_id,
        paused_at=row.paused_at,
        resumed_at=row.resumed_at,
        rate=row.rate,
        resting=resting,
    )


async def resting_under(work: UnitOfWork, pause_id: Id) -> int:
    """The number of intents that rest under a pause, counted up to `MOST_COUNTED`."""
    some = sa.select(_resting.work_id).where(_resting.pause_id == pause_id).limit(MOST_COUNTED)
    count: int = await work.scalar(sa.select(sa.func.count()).select_from(some.subquery()))
    return count


@dataclass(frozen=True, slots=True)
class Paused:
    """The subject of a pause, and its cause."""

    workspace_id: Id
    kind: rules.PauseSubject
    subject_id: Id
    cause: rules.PauseCause = rules.PauseCause.PERSON


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
        # Work accepted at this moment is paused a moment later.
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
        await _due_again(work, row.id, 0 if gathered == rules.CHUNK else None)
    else:
        await _release_next(work, row)
    return True


async def _release_next(work: UnitOfWork, row: Pause) -> None:
    waiting = await waiting_starts(
        work, row.workspace_id, WorkflowKind.AUTOMATION_RUN, MOST_WAITING_STARTS
    )
    if waiting >= MOST_WAITING_STARTS:
        await _due_again(work, row.id, rules.CROWDED_PAUSE)
        return
    looked_at, starts = await release(work, row, rules.chunk_of(row.rate))
    if looked_at == 0:
        await _end_pause(work, row)
        return
    inject_fault(FaultPoint.AFTER_RELEASE_BEFORE_COMMIT, row.id)
    await _due_again(work, row.id, rules.seconds_after(row.rate, starts))


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


async def release_oldest(work: UnitOfWork, subject_id: Id, cause: rules.PauseCause) -> Id | None:
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
        holder = rules.next_holder(row, theirs)
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
        "workflow_kind": joining.c.workflow_kind,
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

"""Pausing and resuming. Both are idempotent: a second call finds done what it asks for."""

from dataclasses import dataclass

from sqlalchemy import update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.core.pauses.gathering import gather
from models.core.pauses.rules import PauseCause, PauseSubject
from models.core.pauses.tables import Pause, pause
from runtime.database import UnitOfWork
from runtime.ids import new_id


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
        await gather(work, row)
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
    again = update(pause).where(*of_subject, pause.c.resumed_at.is_not(None))
    await work.execute(again.values(rate=rate, due_at=work.now))
    resumed = update(pause).where(*of_subject, pause.c.resumed_at.is_(None))
    due = {"resumed_at": work.now, "rate": rate, "due_at": work.now}
    return (await work.execute(resumed.values(**due))).rowcount > 0

"""Reading pauses, and what rests under them."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from sqlalchemy import func, select

from models.core.base import Id, JsonObject
from models.core.pauses.rules import PauseCause, PauseState
from models.core.pauses.shapes import PauseShape, WaitKind
from models.core.pauses.tables import Pause, pause, resting_intent
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork

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
        select(_resting.work_id, *columns)
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
) -> Mapping[tuple[Id, PauseCause], Pause]:
    """The pauses of subjects, by subject and cause."""
    rows = await work.rows(
        select(pause).where(
            pause.c.workspace_id == workspace_id, pause.c.subject_id.in_(sorted(subject_ids))
        ),
        of=Pause,
    )
    return {(row.subject_id, PauseCause(row.cause)): row for row in rows}


async def answer(
    work: UnitOfWork,
    workspace_id: Id,
    subject_id: Id,
    cause: PauseCause = PauseCause.PERSON,
) -> PauseShape:
    """The pause of a subject, and how much rests under it."""
    row = (await pauses_of(work, workspace_id, [subject_id])).get((subject_id, cause))
    if row is None:
        return PauseShape(state=PauseState.RUNNING)
    return shape_of(row, await resting_under(work, row.id))


def shape_of(row: Pause, resting: int) -> PauseShape:
    """A pause on the wire."""
    return PauseShape(
        state=PauseState.PAUSED if row.resumed_at is None else PauseState.RESUMING,
        reason=row.reason,
        paused_by_user_id=row.paused_by_user_id,
        paused_at=row.paused_at,
        resumed_at=row.resumed_at,
        rate=row.rate,
        resting=resting,
    )


async def resting_under(work: UnitOfWork, pause_id: Id) -> int:
    """The number of intents that rest under a pause, counted up to `MOST_COUNTED`."""
    some = select(_resting.work_id).where(_resting.pause_id == pause_id).limit(MOST_COUNTED)
    count: int = await work.scalar(select(func.count()).select_from(some.subquery()))
    return count

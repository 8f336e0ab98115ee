"""Pauses on the wire, and reading them and what rests under them."""

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Protocol

import sqlalchemy as sa
from pydantic import Field

from models.core.base import Id, Input, JsonObject, Moment, Shape, example
from models.core.openapi import FLAG, ID, MOMENT, TEXT, object_of
from models.core.pauses.intents import Pause, pause, resting_intent
from models.core.pauses.rules import MAX_RATE, PauseCause, PauseState
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork

Rate = Annotated[int, Field(ge=1, le=MAX_RATE)]


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

    state: PauseState
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
) -> Mapping[tuple[Id, PauseCause], Pause]:
    """The pauses of subjects, by subject and cause."""
    rows = await work.rows(
        sa.select(pause).where(
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
    some = sa.select(_resting.work_id).where(_resting.pause_id == pause_id).limit(MOST_COUNTED)
    count: int = await work.scalar(sa.select(sa.func.count()).select_from(some.subquery()))
    return count

"""Pauses on the wire."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, Moment, Shape, example
from models.core.openapi import FLAG, ID, MOMENT, TEXT, object_of
from models.core.pauses.rules import MAX_RATE, PauseState

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

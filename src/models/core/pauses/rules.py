"""Subjects and causes of pauses, which of several keeps what rests, and its pace. Pure."""

import math
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeVar

from models.core.base import Id

MAX_RATE = 60_000
"""The highest pace of a release, in starts a minute."""
CHUNK = 250
"""Starts that one transaction releases, or brings to rest."""
CROWDED_PAUSE = 0.2
"""Seconds until a release looks again, while enough starts of its workspace stand in line."""


class PauseSubject(StrEnum):
    AUTOMATION = "automation"
    WORKSPACE = "workspace"


class PauseCause(StrEnum):
    """The cause of a pause: a decision of a member, or runs that failed in a row."""

    PERSON = "person"
    CIRCUIT_BREAKER = "circuit_breaker"


class PauseState(StrEnum):
    PAUSED = "paused"
    RESUMING = "resuming"
    """Resting work is being started; new work stands behind it."""
    RUNNING = "running"


class Holding(Protocol):
    """A pause, as far as it decides where something rests."""

    id: Id
    subject_kind: str
    subject_id: Id
    cause: str
    resumed_at: datetime | None


HoldingT = TypeVar("HoldingT", bound=Holding)


def rank(pause: Holding) -> tuple[bool, bool]:
    """The place of a pause among several of the same work: the first one has what rests."""
    return (
        pause.subject_kind == PauseSubject.WORKSPACE,
        pause.cause == PauseCause.CIRCUIT_BREAKER,
    )


def next_holder(pause: Holding, further: Iterable[HoldingT]) -> HoldingT | None:
    """The pause at which work rests on when `pause` lets go of it; None when it starts.

    Any that is not resumed keeps it. A resumed one gets it only from a pause before it, so that
    nothing goes back and forth, and each start comes after those at the later pause.
    """
    keeping = [one for one in further if one.resumed_at is None or rank(one) > rank(pause)]
    return min(keeping, key=lambda one: (one.resumed_at is not None, rank(one)), default=None)


def chunk_of(rate: int | None) -> int:
    """The number of starts to release at once: with a rate, about as many as a second allows."""
    return CHUNK if rate is None else min(CHUNK, math.ceil(rate / 60))


def seconds_after(rate: int | None, count: int) -> float:
    """Seconds from the release of some starts to that of the next ones."""
    return 0 if rate is None else count * 60 / rate

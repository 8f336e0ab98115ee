"""States of a circuit breaker, the moves between them, and its bounds. Pure."""

from collections.abc import Mapping
from enum import StrEnum

from models.core.lifecycle.rules import Lifecycle

MOST_FAILURES = 1_000
LONGEST_PAUSE = 86_400
"""Seconds."""


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    """Runs rest until its time is over."""
    HALF_OPEN = "half_open"
    """One run tries whether the automation works again."""


BREAKER_MOVES: Mapping[BreakerState, frozenset[BreakerState]] = {
    BreakerState.CLOSED: frozenset({BreakerState.OPEN}),
    BreakerState.OPEN: frozenset({BreakerState.HALF_OPEN, BreakerState.CLOSED}),
    BreakerState.HALF_OPEN: frozenset({BreakerState.OPEN, BreakerState.CLOSED}),
}
BREAKER_LIFECYCLE = Lifecycle(BREAKER_MOVES)


def after_trial(status: str) -> BreakerState:
    """The state that follows from the end of the run that tried; a cancelled one says nothing."""
    if status == "succeeded":
        return BreakerState.CLOSED
    return BreakerState.HALF_OPEN if status == "cancelled" else BreakerState.OPEN

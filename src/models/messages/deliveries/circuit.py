"""The circuit of a line: whether its receiver is asked, and when again (ADR 0070). Pure."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

MOST_FAILURES = 5
"""Attempts in a row that fail before the circuit opens."""
FIRST_PAUSE = 10.0
"""Seconds that a circuit is open at first; each trial that fails doubles them."""
LONGEST_PAUSE = 3_600.0
"""Seconds that a circuit is open at most, unless the receiver itself names a later time."""
SPREAD = 0.2
"""The part of a pause that chance takes away, so that receivers are not all tried at once."""


class CircuitState(StrEnum):
    CLOSED = "closed"
    """Deliveries are attempted as they come."""
    OPEN = "open"
    """The receiver keeps failing: nothing is attempted before the next trial."""
    HALF_OPEN = "half_open"
    """One delivery is a trial, or will be as soon as there is one."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """The outcome of the attempts of a line, up to now.

    `opened` counts the pauses since the last success, and `retry_at` ends the latest; a circuit
    without it is closed. `since` is when it opened or closed.
    """

    failures: int = 0
    opened: int = 0
    retry_at: datetime | None = None
    since: datetime | None = None
    succeeded_at: datetime | None = None

    def state(self, now: datetime) -> CircuitState:
        """The state at a moment; an open circuit opens halfway by time alone."""
        if self.retry_at is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now < self.retry_at else CircuitState.HALF_OPEN


def after_success(before: Circuit, now: datetime) -> Circuit:
    """The circuit closes, and stays so."""
    since = before.since if before.retry_at is None else now
    return Circuit(since=since, succeeded_at=now)


def after_failure(
    before: Circuit, now: datetime, chance: float, retry_after: float | None = None
) -> Circuit:
    """The circuit after one more failure; `chance` is between 0 and 1.

    What was under way when it opened changes nothing more.
    """
    state, failures = before.state(now), before.failures + 1
    if state is CircuitState.OPEN or (state is CircuitState.CLOSED and failures < MOST_FAILURES):
        return replace(before, failures=failures)
    pause = max(pause_of(before.opened, chance), retry_after or 0)
    return replace(
        before,
        failures=failures,
        opened=before.opened + 1,
        retry_at=now + timedelta(seconds=pause),
        since=now if state is CircuitState.CLOSED else before.since,
    )


def pause_of(opened: int, chance: float) -> float:
    """Seconds that a circuit is open which was so many times before, without a success."""
    pause: float = min(FIRST_PAUSE * 2 ** min(opened, 30), LONGEST_PAUSE)
    return pause * (1 - SPREAD * chance)

"""The order in which calls of one place go, and how long one that cannot go yet stays away. Pure.

A place with a rate gives each call a moment of its own, one after the other (GCRA with no burst).
A place with a bound gives as many calls a moment as it has room for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

LEAST_PER_SECOND, MOST_PER_SECOND = 0.001, 100.0
MOST_AT_ONCE = 1_000
LONGEST_PAUSE = timedelta(hours=1)
"""An answer that asks for more is believed so far."""
PAUSING = frozenset({429, 503})
"""The statuses whose `Retry-After` holds for all calls of the host."""

LEASE = timedelta(seconds=30)
"""A call that no one has spoken for so long is no more: its place is given on."""
AHEAD = timedelta(seconds=2)
"""The moments that are given ahead; what would have to wait longer stands in line."""
MOST_CATCH_UP = timedelta(seconds=0.5)
"""A call that went late lets the next one go so much sooner, and no more than their distance."""
SHORTEST_STAY, LONGEST_STAY = timedelta(seconds=10), timedelta(minutes=5)
"""The time after which a call without a moment looks after itself."""
LONGEST_REST = timedelta(minutes=30)
"""The same under the pause of a connection, which may last for days."""
MOST_RELEASED = 6_000
"""The highest pace of a resumed connection, in calls a minute."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The limits of a place, and the moments before which none, or no further call goes.

    While it is `stopped`, no call gets a moment.
    """

    per_second: float | None = None
    at_once: int | None = None
    next_at: datetime | None = None
    free_at: datetime | None = None
    paused_until: datetime | None = None
    stopped: bool = False

    @property
    def interval(self) -> timedelta:
        """The time between two calls."""
        return timedelta(seconds=1 / self.per_second) if self.per_second else timedelta()

    @property
    def has_line(self) -> bool:
        """False where only an answer has asked for a pause."""
        return self.stopped or self.per_second is not None or self.at_once is not None

    def first_moment(self, now: datetime) -> datetime:
        """The earliest moment that another call may have, as far as the rate and a pause say."""
        return max(now, self.next_at or now, self.paused_until or now)

    def free_after(self, gone_at: datetime) -> datetime | None:
        """The first moment for another call after one that goes now."""
        if not self.per_second:
            return None
        catch_up = min(self.interval, MOST_CATCH_UP)
        return max(self.free_at or gone_at, gone_at - catch_up) + self.interval

    def turn(self, moment: datetime, before: int) -> datetime:
        """The time at which a call with a moment goes that has `before` others in front."""
        if self.free_at is None:
            return moment
        return max(moment, self.free_at + before * self.interval)

    def room(self, held: int) -> int | None:
        """The calls that may go beside the `held` ones; None for any number."""
        if self.stopped:
            return 0
        return None if self.at_once is None else max(0, self.at_once - held)


@dataclass(frozen=True, slots=True)
class Round:
    """The moments of the calls that are first in line, and the first one that is free after."""

    moments: Sequence[datetime]
    next_at: datetime | None


def next_round(pace: Pace, now: datetime, held: int, waiting: int) -> Round:
    """Give moments to as many waiting calls as may go soon."""
    room = pace.room(held)
    most = waiting if room is None else min(room, waiting)
    moment, moments = pace.first_moment(now), list[datetime]()
    while len(moments) < most and moment <= now + AHEAD:
        moments.append(moment)
        moment += pace.interval
    return Round(moments, moment if moments and pace.per_second else pace.next_at)


def stay(pace: Pace, now: datetime, held: int, before: int, waited: timedelta) -> timedelta:
    """The time until a call should ask again that has `before` others in front of it.

    By the rate alone it is the call's moment. Where there is no room it is called when there is,
    and looks after itself less often the longer it has waited.
    """
    own = pace.first_moment(now) - now + before * pace.interval
    if pace.room(held) is None:
        return own
    longest = LONGEST_REST if pace.stopped else LONGEST_STAY
    return max(own, min(max(waited, SHORTEST_STAY), longest))


def slower(per_second: float | None, release_rate: int | None) -> float | None:
    """The rate that a limit and a release leave together."""
    rates = (per_second, release_rate and release_rate / 60)
    return min((rate for rate in rates if rate), default=None)


def signal_of(call_key: str) -> str:
    """The name of the signal that lets the execution of a call go."""
    return f"outbound_turn/{call_key}"

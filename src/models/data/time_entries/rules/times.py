"""The times of an entry, and what follows from them (decisions C12)."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from models.data.time_entries.rules.kinds import TIMED_MODES, EntryMode
from runtime.errors import ValidationError

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Nobody keeps time of before."""
LONGEST = timedelta(days=366)
POMODORO = timedelta(minutes=25)
"""The length of a pomodoro that does not say its own."""

Span = tuple[datetime, datetime]
"""From the first moment until before the second."""

_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(duration: timedelta) -> int:
    """A duration as the interface has it."""
    return duration // _MILLISECOND


def duration_of(ms: int | None) -> timedelta | None:
    """The duration of so many milliseconds."""
    return None if ms is None else timedelta(milliseconds=ms)


@dataclass(frozen=True, slots=True)
class Times:
    """The start, the pauses and the end of an entry; pauses are in order and never meet.

    `paused_at` says since when a paused entry stands still, `target` how long it is meant to last.
    """

    started_at: datetime
    mode: EntryMode
    target: timedelta | None = None
    paused_at: datetime | None = None
    ended_at: datetime | None = None
    pauses: tuple[Span, ...] = ()

    @property
    def paused(self) -> timedelta:
        """The time it stood still before it went on."""
        return sum((end - start for start, end in self.pauses), timedelta())

    @property
    def due_at(self) -> datetime | None:
        """The moment its time is up; None when it does not end by itself, or stands still."""
        if self.mode not in TIMED_MODES or self.target is None:
            return None
        if self.paused_at is not None or self.ended_at is not None:
            return None
        return self.started_at + self.target + self.paused

    def stop(self, now: datetime) -> datetime:
        """Until when its time counts, seen at a moment."""
        if self.ended_at is not None:
            return self.ended_at
        if self.paused_at is not None:
            return self.paused_at
        due = self.due_at
        return now if due is None else min(now, due)

    def elapsed(self, now: datetime) -> timedelta:
        """The time it took without its pauses, never less than none."""
        return max(timedelta(), self.stop(now) - self.started_at - self.paused)

    def pause(self, now: datetime) -> "Times":
        """Stand still from now on."""
        return replace(self, paused_at=max(now, self.started_at))

    def resume(self, now: datetime) -> "Times":
        """Go on now."""
        return replace(self, pauses=self._pauses_until(now), paused_at=None)

    def end(self, moment: datetime) -> "Times":
        """End at a moment; a pause that lasts until then does not count."""
        return replace(self, pauses=self._pauses_until(moment), paused_at=None, ended_at=moment)

    def move(self, started_at: datetime | None, ended_at: datetime | None) -> "Times":
        """Begin or end at other moments; of pauses remains what lies in between."""
        begin = started_at or self.started_at
        end = ended_at or self.ended_at
        return replace(
            self, started_at=begin, ended_at=end, pauses=_within(self.pauses, begin, end)
        )

    def check(self, now: datetime) -> None:
        """Raise ValidationError for times in the future, backward, or that nobody can mean."""
        if not EARLIEST <= self.started_at <= now:
            raise ValidationError.at("startedAt", "must lie between the year 2000 and now")
        if self.paused_at is not None and self.paused_at < self.started_at:
            raise ValidationError.at("startedAt", "must not be after the entry was paused")
        if self.ended_at is None:
            return
        if self.ended_at < self.started_at:
            raise ValidationError.at("endedAt", "must not be before startedAt")
        if self.ended_at > now:
            raise ValidationError.at("endedAt", "must not lie in the future")
        if self.ended_at - self.started_at > LONGEST:
            raise ValidationError.at("endedAt", f"must be within {LONGEST.days} days of startedAt")

    def _pauses_until(self, moment: datetime) -> tuple[Span, ...]:
        last = () if self.paused_at is None else ((self.paused_at, moment),)
        return _within((*self.pauses, *last), self.started_at, moment)


def _within(spans: tuple[Span, ...], start: datetime, end: datetime | None) -> tuple[Span, ...]:
    cut = ((max(a, start), b if end is None else min(b, end)) for a, b in spans)
    return tuple((a, b) for a, b in cut if a < b)


def counted(duration: timedelta, round_to_minutes: int | None) -> timedelta:
    """The time a duration counts for in a timer field: to the nearest multiple, halves upwards."""
    if round_to_minutes is None:
        return duration
    step = timedelta(minutes=round_to_minutes)
    shares = Decimal(milliseconds(duration)) / Decimal(milliseconds(step))
    return int(shares.to_integral_value(ROUND_HALF_UP)) * step

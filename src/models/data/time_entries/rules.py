"""Kinds, states, times and days of time entries, and what follows from them. Pure."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from zoneinfo import ZoneInfo

from models.core.lifecycle.rules import Lifecycle
from models.core.values import InvalidValueError, day, is_timezone
from runtime.errors import ConflictError, ValidationError


class TargetKind(StrEnum):
    """The kind of target of a time entry."""

    DATABASE_RECORD = "database_record"
    ITEM = "item"
    WORKSPACE = "workspace"


class EntrySource(StrEnum):
    """The origin of an entry."""

    TIMER = "timer"
    MANUAL = "manual"
    IMPORT = "import"
    AUTOMATION = "automation"


class EntryMode(StrEnum):
    STOPWATCH = "stopwatch"
    COUNTDOWN = "countdown"
    POMODORO = "pomodoro"
    FIXED = "fixed"


class EntryStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    DISCARDED = "discarded"


class EntrySound(StrEnum):
    """The sound at the end of a timer; the client plays it."""

    NONE = "none"
    CHIME = "chime"
    BELL = "bell"
    DIGITAL = "digital"
    GONG = "gong"
    SOFT = "soft"


class CompletedBy(StrEnum):
    """The person or mechanism that ended an entry."""

    USER = "user"
    TIMER = "timer"
    """Its time was up."""
    SYSTEM = "system"
    """Another timer took its place, or its workspace was deleted."""
    ADMIN = "admin"
    """A member who manages the entries of others."""


class EntryAction(StrEnum):
    """The effect of an update on the clock of an entry."""

    PAUSE = "pause"
    RESUME = "resume"
    COMPLETE = "complete"
    DISCARD = "discard"


class OnActive(StrEnum):
    """The outcome for the running entry when another one starts."""

    REPLACE = "replace"
    REJECT = "reject"


_ENDS = frozenset({EntryStatus.COMPLETED, EntryStatus.DISCARDED})

ENTRY_LIFECYCLE = Lifecycle(
    {
        EntryStatus.ACTIVE: frozenset({EntryStatus.PAUSED}) | _ENDS,
        EntryStatus.PAUSED: frozenset({EntryStatus.ACTIVE}) | _ENDS,
        EntryStatus.COMPLETED: frozenset(),
        EntryStatus.DISCARDED: frozenset(),
    }
)
OPEN_ENTRY = ENTRY_LIFECYCLE.open

TIMED_MODES = (EntryMode.COUNTDOWN, EntryMode.POMODORO)
"""The modes in which an entry ends by itself when its time is up."""

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""The earliest time of an entry."""
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
    """The duration of these milliseconds."""
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
        """Continue now."""
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
        """Raise ValidationError for times in the future, backward, or impossible ones."""
        if not EARLIEST <= self.started_at <= now:
            raise ValidationError.at("startedAt", "must be between the year 2000 and now")
        if self.paused_at is not None and self.paused_at < self.started_at:
            raise ValidationError.at("startedAt", "must not be after the entry was paused")
        if self.ended_at is None:
            return
        if self.ended_at < self.started_at:
            raise ValidationError.at("endedAt", "must not be before startedAt")
        if self.ended_at > now:
            raise ValidationError.at("endedAt", "must not be in the future")
        if self.ended_at - self.started_at > LONGEST:
            raise ValidationError.at("endedAt", f"must be within {LONGEST.days} days of startedAt")

    def _pauses_until(self, moment: datetime) -> tuple[Span, ...]:
        last = () if self.paused_at is None else ((self.paused_at, moment),)
        return _within((*self.pauses, *last), self.started_at, moment)


def _within(spans: tuple[Span, ...], start: datetime, end: datetime | None) -> tuple[Span, ...]:
    cut = ((max(a, start), b if end is None else min(b, end)) for a, b in spans)
    return tuple((a, b) for a, b in cut if a < b)


def rounded_time(duration: timedelta, round_to_minutes: int | None) -> timedelta:
    """The time a duration counts for in a timer field: to the nearest multiple, halves upwards."""
    if round_to_minutes is None:
        return duration
    step = timedelta(minutes=round_to_minutes)
    shares = Decimal(milliseconds(duration)) / Decimal(milliseconds(step))
    return int(shares.to_integral_value(ROUND_HALF_UP)) * step


_ENDING_ACTIONS = {
    EntryAction.COMPLETE: EntryStatus.COMPLETED,
    EntryAction.DISCARD: EntryStatus.DISCARDED,
}
_LEADS_TO = {
    EntryAction.PAUSE: EntryStatus.PAUSED,
    EntryAction.RESUME: EntryStatus.ACTIVE,
    **_ENDING_ACTIONS,
}


def next_status(status: EntryStatus, action: EntryAction | None) -> EntryStatus:
    """The status an action leads to; what has ended stays as it has, and what is so already is.

    Raises ConflictError for the clock of an entry that has ended.
    """
    ended = status in _ENDING_ACTIONS.values()
    if action is None or (ended and action in _ENDING_ACTIONS):
        return status
    if ended:
        raise ConflictError(f"The time entry is {status}; it can neither be paused nor resumed.")
    return _LEADS_TO[action]


def moved_times(times: Times, before: EntryStatus, after: EntryStatus, now: datetime) -> Times:
    """The times of an entry whose status changes. One that ends while it stands still ended when it
    was paused.
    """
    if before == after:
        return times
    match after:
        case EntryStatus.PAUSED:
            return times.pause(now)
        case EntryStatus.ACTIVE:
            return times.resume(now)
        case _:
            return times.end(times.paused_at or now)


MAX_DAYS = 366
DEFAULT_DAYS = 30

_DAY = timedelta(days=1)


def read_zone(name: str) -> ZoneInfo:
    """The zone of this name. Raises `ValidationError`."""
    if not is_timezone(name):
        raise ValidationError.at("timezone", "must be an IANA time zone such as Europe/Berlin")
    return ZoneInfo(name)


def read_days(
    first: str | None, last: str | None, now: datetime, zone: ZoneInfo
) -> tuple[date, date]:
    """The first and the last day: until today, and 30 days, unless they are said.

    Raises `ValidationError` for what is no day, backward, or more than 366 days.
    """
    end = _read(last, "lastDay") or now.astimezone(zone).date()
    begin = _read(first, "firstDay") or max(end - (DEFAULT_DAYS - 1) * _DAY, EARLIEST.date())
    if end < begin:
        raise ValidationError.at("lastDay", "must not be before firstDay")
    if (end - begin).days >= MAX_DAYS:
        raise ValidationError.at("lastDay", f"must be within {MAX_DAYS} days of firstDay")
    return begin, end


def starts_of_days(first: date, last: date, zone: ZoneInfo) -> list[datetime]:
    """The start of each day, and the end of the last one.

    A day without a midnight begins when its clock is set forward; of two midnights the first
    counts.
    """
    count = (last - first).days + 2
    return [_start(first + number * _DAY, zone) for number in range(count)]


def _start(of: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(of, time(), zone).astimezone(UTC)


def _read(text: str | None, path: str) -> date | None:
    if text is None:
        return None
    try:
        found = day(text)
    except InvalidValueError as problem:
        raise ValidationError.at(path, str(problem)) from problem
    if not EARLIEST.date() <= found <= date(9990, 1, 1):
        raise ValidationError.at(path, "must be a day from the year 2000 on")
    return found

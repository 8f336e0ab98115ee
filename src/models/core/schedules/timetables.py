"""Timetables of schedules in their time zones: cron expressions, due times, changes of the clock.

Cron expressions have five fields, as crontab(5) reads them (ADR 0128). Pure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import chain, dropwhile, islice, takewhile
from typing import Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from models.core.base import Id, Shape
from runtime.clock import wire_timestamp
from runtime.derived_ids import derived_id
from runtime.temporal.workflow_kinds import WorkflowKind

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)
_SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAY_FIELDS = (2, 4)

ALL_HOURS = tuple(range(24))
ALL_DAYS = tuple(range(1, 32))
ALL_MONTHS = tuple(range(1, 13))
ALL_WEEKDAYS = tuple(range(7))

_PART = re.compile(r"(?P<range>\*|\w+(?:-\w+)?)(?:/(?P<step>\d{1,4}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cron:
    """The values each field matches, ascending; days of the week count from Sunday, 0.

    `around_the_clock` says that the hours are all hours or a step through them, so that its times
    are a beat rather than hours of the day. `either_day` says that both day fields restrict it.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    around_the_clock: bool = False
    either_day: bool = False

    def names_day(self, day: date) -> bool:
        """True for a date on which it has times."""
        if day.month not in self.months:
            return False
        matches = (day.day in self.days, day.isoweekday() % 7 in self.weekdays)
        return any(matches) if self.either_day else all(matches)


def cron_problem(text: str) -> str | None:
    """The sentence for a cron expression that cannot be read, or None.

    Five fields (minute, hour, day of month, month, day of week) of `*`, numbers, names, ranges,
    lists and steps, or a shorthand such as `@daily`. Time zones have a key of their own.
    """
    if len(text) > 256:
        return "A cron expression can have at most 256 characters."
    fields = _fields(text)
    if len(fields) != len(_FIELDS):
        return (
            "A cron expression needs five fields: minute, hour, day of month, month, day of week. "
            f"This one has {len(fields)}."
        )
    for spec, values in zip(_FIELDS, fields, strict=True):
        for part in values.split(","):
            if _range(spec, part) is None:
                if (ranges := _turned(spec, part)) is not None:
                    return (
                        f'The {spec.name} "{part[:32]}" of the cron expression runs backwards. '
                        f"Write it as two ranges: {ranges}."
                    )
                return (
                    f'The {spec.name} "{part[:32]}" of the cron expression must be within '
                    f"{spec.lowest} to {spec.highest}."
                )
    return None


def parse_cron(text: str) -> Cron:
    """The fields of an expression without a `cron_problem`, as numbers."""
    fields = _fields(text)
    minutes, hours, days, months, weekdays = (
        _values(spec, field) for spec, field in zip(_FIELDS, fields, strict=True)
    )
    return Cron(
        minutes,
        hours,
        days,
        months,
        tuple(sorted({day % 7 for day in weekdays})),
        around_the_clock=_is_around_the_clock(fields[1], hours),
        # As in crontab(5), a field that begins with a star is no restriction, even with a step.
        either_day=not fields[2].startswith("*") and not fields[4].startswith("*"),
    )


def _is_around_the_clock(field: str, hours: tuple[int, ...]) -> bool:
    """True for all hours, and for a step that begins anew each day without a pause."""
    match = _PART.fullmatch(field)
    if hours == ALL_HOURS or match is None or match["step"] is None:
        return hours == ALL_HOURS
    step = int(match["step"])
    return len(hours) > 1 and hours[0] < step and hours[-1] + step >= len(ALL_HOURS)


def _fields(text: str) -> list[str]:
    """The five fields, or as many as there are; `?` in a day field is `*`, as Quartz writes it."""
    lowered = text.strip().lower()
    fields = _SHORTHANDS.get(lowered, lowered).split()
    return [
        "*" if field == "?" and place in _DAY_FIELDS else field
        for place, field in enumerate(fields)
    ]


def _values(spec: _Field, field: str) -> tuple[int, ...]:
    ranges: Iterator[range | None] = (_range(spec, part) for part in field.split(","))
    return tuple(sorted({value for numbers in ranges for value in numbers or ()}))


def _range(spec: _Field, part: str) -> range | None:
    """The values of one part of a list: a single value with a step continues to the highest."""
    match = _PART.fullmatch(part)
    if match is None:
        return None
    step = int(match["step"] or 1)
    if not 1 <= step <= spec.highest - spec.lowest + 1:
        return None
    if match["range"] == "*":
        return range(spec.lowest, spec.highest + 1, step)
    bounds = [_number(spec, text) for text in match["range"].split("-")]
    if spec.names is _DAYS and len(bounds) == 2 and bounds[0] and bounds[1] == 0:
        # Sunday is the last day of a range as well.
        bounds[1] = 7
    known = [bound for bound in bounds if bound is not None]
    in_range = all(spec.lowest <= bound <= spec.highest for bound in known)
    if len(known) != len(bounds) or not in_range or known != sorted(known):
        return None
    last = spec.highest if len(known) == 1 and match["step"] else known[-1]
    return range(known[0], last + 1, step)


def _turned(spec: _Field, part: str) -> str | None:
    """A range that runs backwards, such as `22-2`, as two; None for any other part."""
    first, hyphen, last = part.partition("-")
    bounds = [_number(spec, first), _number(spec, last)]
    if not hyphen or any(bound is None for bound in bounds):
        return None
    ranges = f"{first}-{spec.highest},{spec.lowest}-{last}"
    return ranges if all(_range(spec, one) for one in ranges.split(",")) else None


def _number(spec: _Field, text: str) -> int | None:
    if text in spec.names:
        return spec.names.index(text) + spec.lowest
    return int(text) if text.isdigit() and len(text) <= 4 else None


_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A moment at which the local clock is set, and what it shows just before and after."""

    at: datetime
    before: datetime
    after: datetime

    @property
    def is_forward(self) -> bool:
        return self.after > self.before

    def skips_day(self, wall: datetime) -> bool:
        """True when the whole day of a local time does not exist."""
        midnight = wall.replace(hour=0, minute=0)
        return self.before <= midnight and midnight + _DAY <= self.after


def clock_changes(zone: ZoneInfo, first: datetime, last: datetime) -> Iterator[ClockChange]:
    """The changes of a zone's clock after `first` until `last`, to the minute."""
    earlier, last = (one.astimezone(UTC).replace(second=0, microsecond=0) for one in (first, last))
    while earlier < last:
        later = min(earlier + _DAY, last)
        if offset_at(earlier, zone) != offset_at(later, zone):
            later = _first_with_other_offset(earlier, later, zone)
            wall = later.replace(tzinfo=None)
            before, after = offset_at(earlier, zone), offset_at(later, zone)
            yield ClockChange(later, wall + before, wall + after)
        earlier = later


def _first_with_other_offset(earlier: datetime, later: datetime, zone: ZoneInfo) -> datetime:
    while later - earlier > _MINUTE:
        middle = earlier + (later - earlier) // _MINUTE // 2 * _MINUTE
        same = offset_at(middle, zone) == offset_at(earlier, zone)
        earlier, later = (middle, later) if same else (earlier, middle)
    return later


def offset_at(moment: datetime, zone: ZoneInfo) -> timedelta:
    """The offset of the local clock from UTC at a moment."""
    return moment.astimezone(zone).utcoffset() or timedelta()


def moment_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first moment, in UTC, at which the local clock shows `wall`.

    For a time that the clock skips it is the moment at which the clock is set (ADR 0128).
    """
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    return next(clock_changes(zone, moment - 2 * _DAY, moment)).at


EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LAST_YEAR = 2100
"""Between these lie all due times: Temporal looks no further for a date that matches."""

_END = datetime(LAST_YEAR + 1, 1, 1)  # noqa: DTZ001  (a local time)

_HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """The due times of a schedule: of a cron expression in its zone, or at an interval of seconds.

    Both bounds are due times themselves if they match. Intervals count from `start`, else from the
    epoch.

    Where the local clock is set (ADR 0128), a cron expression of fixed hours has a time once: the
    first time the clock shows it, or when the clock is set if it skips the time. An expression
    around the clock keeps its beat: its times come as often as the clock shows them, and after a
    change those by the old clock continue until the first one by the new clock.
    """

    zone: str = "UTC"
    cron: Cron | None = None
    interval_seconds: int | None = None
    start: datetime | None = None
    end: datetime | None = None

    @property
    def offset(self) -> int:
        """Seconds from the epoch to the first multiple of the interval."""
        if self.interval_seconds is None or self.start is None:
            return 0
        return int(self.start.timestamp()) % self.interval_seconds

    def next_after(self, moment: datetime) -> datetime | None:
        """The first due time later than `moment`, in UTC; None when there is none any more."""
        return next(self.after(moment), None)

    def after(self, moment: datetime) -> Iterator[datetime]:
        """All due times later than `moment`, in UTC, ascending."""
        moment = max(moment, (self.start or EARLIEST) - _SECOND)
        if self.interval_seconds is not None:
            due = _multiples(self.interval_seconds, self.offset, moment)
        else:
            due = cron_times(self.cron, ZoneInfo(self.zone), moment) if self.cron else iter(())
        return takewhile(lambda one: self.end is None or one <= self.end, due)

    def between(self, first: datetime, last: datetime, limit: int) -> list[datetime]:
        """The due times from `first` to `last`, both included, at most `limit` of them."""
        due = dropwhile(first.__gt__, self.after(max(first, EARLIEST) - _SECOND))
        return list(islice(takewhile(last.__ge__, due), limit))


def due_run_id(schedule_id: str, due: datetime) -> UUID:
    """The id of the run of one due time, for every caller (interface.md#schedules)."""
    return derived_id(schedule_id, wire_timestamp(due))


def _multiples(interval: int, offset: int, moment: datetime) -> Iterator[datetime]:
    seconds = (int(moment.timestamp()) - offset) // interval * interval + offset
    while moment.year <= LAST_YEAR:
        seconds += interval
        moment = datetime.fromtimestamp(seconds, UTC)
        yield moment


def cron_times(cron: Cron, zone: ZoneInfo, moment: datetime) -> Iterator[datetime]:
    """The times of an expression later than `moment`, by stretches between changes of the clock."""
    # A change has effects for less than a day.
    begin, change = moment.astimezone(UTC) - _DAY, None
    while begin.year <= LAST_YEAR:
        following = next(clock_changes(zone, begin, begin + _DAY), None)
        end = begin + _DAY if following is None else following.at
        since = begin if change else max(begin, moment)
        due = None
        for due in _between_changes(cron, offset_at(begin, zone), since, end, change):
            if due > moment:
                yield due
        begin, change = end, following
        if due is None and change is None:
            wall = next(walls(cron, (begin - _DAY).replace(tzinfo=None), _END), None)
            if wall is None:
                return
            begin = max(begin, wall.replace(tzinfo=UTC) - 3 * _DAY)


def _between_changes(
    cron: Cron, offset: timedelta, begin: datetime, end: datetime, change: ClockChange | None
) -> Iterator[datetime]:
    """The times of a stretch in which the offset of the clock stays; a change may begin it."""
    first, last = ((moment + offset).replace(tzinfo=None) for moment in (begin, end))
    if change is not None and not cron.around_the_clock:
        if not change.is_forward:
            # Times that the clock showed before the change have come already.
            first = change.before
        elif next(_skipped(cron, change), None) and next(walls(cron, first, last), None) != first:
            yield begin
    elif change is not None:
        for shown in _by_old_clock(cron, change, last):
            yield (shown - offset).replace(tzinfo=UTC)
    for wall in walls(cron, first, last):
        yield (wall - offset).replace(tzinfo=UTC)


def _by_old_clock(cron: Cron, change: ClockChange, last: datetime) -> Iterator[datetime]:
    """The times by the old clock, as the new one shows them, until the first by the new one."""
    until = next(walls(cron, change.after, last), last)
    for wall in walls(cron, change.before, until + (change.before - change.after)):
        shown = wall + (change.after - change.before)
        if cron.names_day(shown):
            yield shown


def _skipped(cron: Cron, change: ClockChange) -> Iterator[datetime]:
    """The times that a change skips, on days that exist."""
    return (wall for wall in walls(cron, change.before, change.after) if not change.skips_day(wall))


def walls(cron: Cron, first: datetime, last: datetime) -> Iterator[datetime]:
    """The local times from `first` until before `last` that an expression names."""
    day = first.replace(hour=0, minute=0, second=0, microsecond=0)
    while day < last and day.year <= LAST_YEAR:
        if day.month not in cron.months:
            day = (day.replace(day=1) + 32 * _DAY).replace(day=1)
            continue
        if cron.names_day(day):
            hours = (day.replace(hour=hour) for hour in cron.hours)
            named = chain.from_iterable(
                (hour.replace(minute=minute) for minute in cron.minutes)
                for hour in hours
                if first < hour + _HOUR
            )
            yield from takewhile(last.__gt__, dropwhile(first.__gt__, named))
        day += _DAY


Overlap = Literal["skip", "buffer_one", "allow_all", "cancel_other"]
"""The fate of a due time while an earlier run still runs."""

CATCHUP_SECONDS = 600
"""Delay within which a missed due time still runs, by default.

See interface.md#schedules.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times at which a schedule fires, and its treatment of due times that it cannot meet."""

    timetable: Timetable
    jitter_seconds: int = 0
    overlap: Overlap = "skip"
    catchup_seconds: int = CATCHUP_SECONDS


@dataclass(frozen=True, slots=True)
class PassedOverCounts:
    """Due times without a run: the earlier run was open, or no worker ran in time."""

    skipped: int
    missed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredSchedule:
    """The schedule of one subject as it should be; `paused` says why it does not fire."""

    workflow_kind: WorkflowKind
    subject_id: Id
    workspace_id: Id
    title: str
    """The text that an operator reads; see `title_of`."""
    timing: Timing
    paused: str | None
    next_run_at: datetime | None = field(compare=False)
    """The value of `next_after` in the subject's row."""
    passed_over: PassedOverCounts = field(compare=False)
    """The counts of the due times so far in the subject's row."""

    @property
    def schedule_id(self) -> str:
        return self.workflow_kind.workflow_id(self.subject_id)

    def next_after(self, moment: datetime) -> datetime | None:
        """The next moment it fires, without jitter; None while it is paused or after its end."""
        return None if self.paused else self.timing.timetable.next_after(moment)


_TITLE_BYTES = 200
"""Bytes of the longest summary that Temporal takes."""


def title_of(label: str, action: str) -> str:
    """`Prices · refresh`, cut to what Temporal takes."""
    tail = f" · {action}"
    return label.encode()[: _TITLE_BYTES - len(tail.encode())].decode(errors="ignore") + tail


class PassedOver(Shape):
    """Due times without a run since the schedule was created, as of about a minute ago.

    `skipped`: an earlier run was still open. `missed`: the platform was down for longer than the
    catch-up window of the schedule, ten minutes by default.
    """

    skipped: int
    missed: int


_YEAR = timedelta(days=366)

EITHER_DAY = "The expression has days of the month and of the week. It runs if either matches."


def clock_notes(timetable: Timetable, first: datetime, last: datetime) -> list[str]:
    """A sentence for each change of the clock between two moments that touches due times."""
    if timetable.cron is None:
        return []
    zone = ZoneInfo(timetable.zone)
    notes = (_note(timetable.cron, zone, one) for one in clock_changes(zone, first, last))
    return [note for note in notes if note is not None]


def schedule_notes(timetable: Timetable, now: datetime) -> list[str]:
    """Notes on the less expected times of a schedule, in the year to come."""
    return [*day_notes(timetable), *clock_notes(timetable, now, now + _YEAR)]


def day_notes(timetable: Timetable) -> Iterator[str]:
    """A note on the two fields of days, if both restrict the schedule."""
    if timetable.cron is not None and timetable.cron.either_day:
        yield EITHER_DAY


def fire_note(timetable: Timetable, due: datetime) -> str | None:
    """The reason for a due time that the expression does not name; None for most."""
    cron, wall = timetable.cron, due.astimezone(ZoneInfo(timetable.zone)).replace(tzinfo=None)
    # Times by the old clock come for less than a day.
    is_named = cron is None or next(walls(cron, wall, wall + _MINUTE), None) == wall
    return next(iter(clock_notes(timetable, due - (_MINUTE if is_named else _DAY), due)), None)


def _note(cron: Cron, zone: ZoneInfo, change: ClockChange) -> str | None:
    earlier, later = sorted((change.before, change.after))
    touched = next(walls(cron, earlier, later), None)
    if touched is None and cron.around_the_clock:
        touched = next(_by_old_clock(cron, change, change.after + _DAY), None)
    if touched is None:
        return None
    clock = (
        f"the clock of {zone.key} goes {'forward' if change.is_forward else 'back'} from"
        f" {change.before:%H:%M} to {change.after:%H:%M}"
    )
    if cron.around_the_clock:
        return f"On {change.before:%Y-%m-%d} {clock}. The schedule keeps its interval."
    if not change.is_forward:
        return (
            f"On {change.before:%Y-%m-%d} {clock}: {touched:%H:%M} occurs twice. The schedule runs"
            " only the first time."
        )
    if change.skips_day(touched):
        return f"{touched:%Y-%m-%d} does not exist in {zone.key}, so there are no runs."
    return (
        f"{touched:%Y-%m-%d %H:%M} does not exist: {clock}. The schedule runs at"
        f" {change.after:%H:%M} instead."
    )

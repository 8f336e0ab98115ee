"""The due times of a schedule, without asking Temporal; its spec there is made to follow them.

Where the local clock is set (ADR 0128), a cron expression of fixed hours has a time once: the first
time the clock shows it, or when the clock is set if it skips the time. An expression around the
clock keeps its beat: its times come as often as the clock shows them, and after a change those by
the old clock continue until the first one by the new clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, dropwhile, islice, takewhile
from uuid import UUID
from zoneinfo import ZoneInfo

from models.core.schedules.cron import Cron
from models.core.schedules.timezones import ClockChange, clock_changes, offset_at
from runtime.derived_ids import derived_id
from runtime.timestamps import wire_timestamp

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LAST_YEAR = 2100
"""Between these lie all due times: Temporal looks no further for a date that matches."""

_END = datetime(LAST_YEAR + 1, 1, 1)  # noqa: DTZ001  (a local time)
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """The due times of a schedule: of a cron expression in its zone, or every so many seconds.

    Both bounds are due times themselves if they match. Intervals count from `start`, else from
    the epoch.
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
    """The run of one due time, whoever asks for it and however often (decisions D2)."""
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
            # What the clock showed before came then.
            first = change.before
        elif next(_skipped(cron, change), None) and next(walls(cron, first, last), None) != first:
            yield begin
    elif change is not None:
        until = next(walls(cron, first, last), last)
        by_old = walls(cron, change.before, until + (change.before - change.after))
        for wall in by_old:
            shown = wall + (change.after - change.before)
            if cron.names_day(shown):
                yield (shown - offset).replace(tzinfo=UTC)
    for wall in walls(cron, first, last):
        yield (wall - offset).replace(tzinfo=UTC)


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

"""The due times of a schedule, without asking Temporal, and exactly as Temporal decides them.

Temporal walks the local clock: times of an hour that daylight saving skips never come, and in
hours that come twice it can fire twice, once or not at all. Its rules are followed to the letter,
so that what a preview shows is what happens; tests hold them against a real server.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import dropwhile, islice, takewhile
from uuid import UUID
from zoneinfo import ZoneInfo

from models.core.schedules.cron import Cron
from runtime.derived_ids import derived_id
from runtime.timestamps import wire_timestamp

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LAST_YEAR = 2100
"""Between these lie all due times: Temporal looks no further for a date that matches."""

_NONE = timedelta()
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
        moment = max(moment, (self.start or EARLIEST) - _SECOND)
        if moment.year > LAST_YEAR:
            return None
        if self.interval_seconds is not None:
            passed = int(moment.timestamp()) - self.offset
            seconds = (passed // self.interval_seconds + 1) * self.interval_seconds + self.offset
            due: datetime | None = datetime.fromtimestamp(seconds, UTC)
        else:
            due = None if self.cron is None else _cron_after(self.cron, ZoneInfo(self.zone), moment)
        if due is None or (self.end is not None and due > self.end):
            return None
        return due

    def after(self, moment: datetime) -> Iterator[datetime]:
        """All due times later than `moment`."""
        due = self.next_after(moment)
        while due is not None:
            yield due
            due = self.next_after(due)

    def between(self, first: datetime, last: datetime, limit: int) -> list[datetime]:
        """The due times from `first` to `last`, both included, at most `limit` of them."""
        due = dropwhile(first.__gt__, self.after(max(first, EARLIEST) - _SECOND))
        return list(islice(takewhile(last.__ge__, due), limit))


def due_run_id(schedule_id: str, due: datetime) -> UUID:
    """The run of one due time, whoever asks for it and however often (decisions D2)."""
    return derived_id(schedule_id, wire_timestamp(due))


def _cron_after(cron: Cron, zone: ZoneInfo, moment: datetime) -> datetime | None:
    local = moment.astimezone(zone)
    hour = local.replace(tzinfo=None, fold=0, minute=0, second=0, microsecond=0)
    minute = local.minute + 1
    shift = _HOUR if _local(moment - _HOUR, zone).hour == local.hour else _NONE
    while hour.year <= LAST_YEAR:
        if not _has_times(cron, hour, zone):
            hour, minute, shift = _next_day(cron, hour), 0, _NONE
        elif hour.hour not in cron.hours:
            hour, minute, shift = hour + _HOUR, 0, _NONE
        elif (match := next(filter(minute.__le__, cron.minutes), None)) is None:
            # The same hour again, if it comes twice.
            again = not shift and instant(hour + _HOUR, zone) - instant(hour, zone) > _HOUR
            hour, shift = (hour, _HOUR) if again else (hour + _HOUR, _NONE)
            minute = 0
        else:
            due = instant(hour.replace(minute=match), zone)
            if _local(due, zone).hour == hour.hour:
                return due + shift
            # The clock skips this hour.
            hour, minute = hour + _HOUR, 0
    return None


def _has_times(cron: Cron, hour: datetime, zone: ZoneInfo) -> bool:
    """True when all three day fields match. Where the clock skips midnight, the weekday may be that
    of the day before."""
    if hour.month not in cron.months or hour.day not in cron.days:
        return False
    return _local(instant(hour, zone), zone).isoweekday() % 7 in cron.weekdays


def _next_day(cron: Cron, hour: datetime) -> datetime:
    """Midnight of the day that may match next."""
    midnight = hour.replace(hour=0)
    if hour.month in cron.months:
        return midnight + timedelta(days=1)
    return (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, at which the local clock shows `wall`.

    Of two such moments it is the one Temporal takes: the later one east of Greenwich, the earlier
    one west of it. A time that the clock skips becomes one as long before or after the gap.
    """
    local = wall.replace(tzinfo=UTC)
    guess = local - (_local(local, zone).utcoffset() or _NONE)
    return local - (_local(guess, zone).utcoffset() or _NONE)


def _local(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone)

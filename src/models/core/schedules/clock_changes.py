"""Effects of daylight saving on a schedule, said to the person who made it (decisions D2)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from models.core.schedules.cron import Cron
from models.core.schedules.timetables import Timetable

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_ADVICE = "With intervalSeconds, or in the time zone UTC, no time is left out and none comes twice."


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A moment at which the local clock is set, and what it shows just before and after."""

    before: datetime
    after: datetime


def clock_notes(timetable: Timetable, first: datetime, last: datetime) -> list[str]:
    """A sentence for each change of the clock between two moments that touches due times."""
    if timetable.cron is None:
        return []
    zone = ZoneInfo(timetable.zone)
    sentences = [_note(timetable.cron, zone, change) for change in clock_changes(zone, first, last)]
    notes = [note for note in sentences if note is not None]
    return [*notes, _ADVICE] if notes else []


def clock_changes(zone: ZoneInfo, first: datetime, last: datetime) -> Iterator[ClockChange]:
    """The changes of a zone's clock between two moments, to the minute."""
    day = first.astimezone(UTC).replace(second=0, microsecond=0)
    while day < last:
        earlier, later = day, day + _DAY
        if _offset(earlier, zone) != _offset(later, zone):
            while later - earlier > _MINUTE:
                middle = earlier + (later - earlier) // _MINUTE // 2 * _MINUTE
                same = _offset(middle, zone) == _offset(earlier, zone)
                earlier, later = (middle, later) if same else (earlier, middle)
            wall = later.replace(tzinfo=None)
            yield ClockChange(wall + _offset(day, zone), wall + _offset(later, zone))
        day += _DAY


def _note(cron: Cron, zone: ZoneInfo, change: ClockChange) -> str | None:
    if change.after > change.before:
        skipped = _matching(cron, change.before, change.after)
        if not skipped:
            return None
        return (
            f"{skipped[0]:%Y-%m-%d %H:%M} does not exist in {zone.key}: the clock goes from"
            f" {change.before:%H:%M} to {change.after:%H:%M}, and times in between are left out."
        )
    around = (change.after - _HOUR, change.before + _HOUR)
    if not _matching(cron, *around):
        return None
    return (
        f"On {change.before:%Y-%m-%d} the clock of {zone.key} goes back from"
        f" {change.before:%H:%M} to {change.after:%H:%M}: times from {around[0]:%H:%M} to"
        f" {around[1]:%H:%M} may come once, twice or not at all, as listed."
    )


def _matching(cron: Cron, start: datetime, end: datetime) -> list[datetime]:
    """The local times from `start` until before `end` that the expression names."""
    minutes = (start + _MINUTE * count for count in range((end - start) // _MINUTE))
    return [minute for minute in minutes if _is_named(cron, minute)]


def _is_named(cron: Cron, wall: datetime) -> bool:
    return (
        wall.minute in cron.minutes
        and wall.hour in cron.hours
        and wall.day in cron.days
        and wall.month in cron.months
        and wall.isoweekday() % 7 in cron.weekdays
    )


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()

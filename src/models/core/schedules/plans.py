"""The calendars and single moments by which Temporal fires a cron expression when it is due.

Temporal walks the local clock. Around a change it leaves times out, and in hours that come twice it
fires twice, once or not at all. Hours that come twice are therefore cut out of the calendars, and
due times that the calendars lack are added as single moments. To find them, Temporal's walk through
the other hours is followed here; tests hold it against a real server. A plan knows the changes of
`_YEARS` years and is made anew each year, when the sweep updates the schedules that it alters.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from models.core.schedules import timetables

ALL_YEARS = tuple(range(timetables.EARLIEST.year, timetables.LAST_YEAR + 1))
_YEARS = 3
"""The years whose changes a plan knows, the present one included."""

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_REACH = timedelta(hours=4)
"""More than the time before and after a change in which Temporal goes astray."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Local times as Temporal matches them: all fields must match."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    years: tuple[int, ...] = ALL_YEARS

    def names_date(self, day: date) -> bool:
        """True for a date that matches, on any weekday."""
        return day.day in self.days and day.month in self.months and day.year in self.years

    def names_day(self, day: date) -> bool:
        """True for a date on which it has times."""
        return self.names_date(day) and day.isoweekday() % 7 in self.weekdays


@dataclass(frozen=True, slots=True)
class Plan:
    """Calendars in a time zone, and single moments beside them."""

    zone: str
    calendars: tuple[Calendar, ...] = ()
    moments: tuple[datetime, ...] = ()


def plan_of(timetable: timetables.Timetable, now: datetime) -> Plan:
    """The calendars and moments of a timetable, beside its interval and its bounds."""
    if timetable.cron is None:
        return Plan(timetable.zone)
    return _cron_plan(timetable.cron, timetable.zone, max(now, timetable.start or now).year)


@lru_cache(maxsize=4_096)
def _cron_plan(cron: timetables.Cron, zone_name: str, year: int) -> Plan:
    zone, changes = ZoneInfo(zone_name), _changes(zone_name, year)
    new_year = datetime(year, 1, 1, tzinfo=UTC)
    calendar = _in_utc(
        cron,
        {timetables.offset_at(at, zone) for at in (new_year, *(change.at for change in changes))},
    )
    if calendar is not None:
        return Plan("UTC", (calendar,))
    calendar = Calendar(cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays)
    calendars = [calendar]
    if cron.either_day:
        calendars = [
            replace(calendar, weekdays=timetables.ALL_WEEKDAYS),
            replace(calendar, days=timetables.ALL_DAYS),
        ]
    for day, hours in _repeated_hours(changes).items():
        named = [calendar for calendar in calendars if calendar.names_day(day)]
        calendars = _all_without(calendars, named, day, hours)
    for day in _days_without_midnight(changes):
        # Temporal takes such a day for the one before it.
        others = [calendar for calendar in calendars if not calendar.names_day(day)]
        calendars = _all_without(calendars, others, day, set(timetables.ALL_HOURS))
    missing = {due for change in changes for due in _missing(cron, calendars, zone, change)}
    return Plan(zone_name, tuple(calendars), tuple(sorted(missing)))


@lru_cache(maxsize=1_024)
def _changes(zone_name: str, year: int) -> tuple[timetables.ClockChange, ...]:
    """The changes of a zone's clock that a plan of a year knows."""
    first, last = (datetime(one, 1, 1, tzinfo=UTC) for one in (year, year + _YEARS))
    return tuple(timetables.clock_changes(ZoneInfo(zone_name), first - _DAY, last))


def _in_utc(cron: timetables.Cron, offsets: Iterable[timedelta]) -> Calendar | None:
    """The calendar in UTC of an expression of every hour, if each offset makes it the same one."""
    hourly = (
        timetables.ALL_HOURS,
        timetables.ALL_DAYS,
        timetables.ALL_MONTHS,
        timetables.ALL_WEEKDAYS,
    )
    if (cron.hours, cron.days, cron.months, cron.weekdays) != hourly:
        return None
    minutes = {
        tuple(sorted((minute - offset // _MINUTE) % 60 for minute in cron.minutes))
        for offset in offsets
    }
    return Calendar(minutes.pop(), *hourly) if len(minutes) == 1 else None


def _missing(
    cron: timetables.Cron,
    calendars: Iterable[Calendar],
    zone: ZoneInfo,
    change: timetables.ClockChange,
) -> Iterator[datetime]:
    """The due times around a change that calendars leave out."""
    days = [change.after + count * _DAY for count in range(-3, 4)]
    near = [calendar for calendar in calendars if any(map(calendar.names_day, days))]
    after = change.at - _REACH
    for due in timetables.cron_times(cron, zone, after):
        if due > change.at + 2 * _DAY:
            return
        if _next(near, zone, after) != due:
            yield due
        elif due > change.at + _REACH and not cron.around_the_clock:
            return
        after = due


def _repeated_hours(changes: Iterable[timetables.ClockChange]) -> Mapping[date, set[int]]:
    """The local hours, by their dates, around the times that come twice.

    What Temporal does with them depends on where its walk begins.
    """
    hours = defaultdict[date, set[int]](set)
    for change in changes:
        hour = change.after.replace(minute=0) - _HOUR
        while hour < change.before:
            hours[hour.date()].add(hour.hour)
            hour += _HOUR
    return hours


def _days_without_midnight(changes: Iterable[timetables.ClockChange]) -> Iterator[date]:
    for change in changes:
        if change.before <= change.after.replace(hour=0, minute=0) < change.after:
            yield change.after.date()


def _all_without(
    calendars: Iterable[Calendar], affected: Collection[Calendar], day: date, hours: set[int]
) -> list[Calendar]:
    """The calendars, of which those affected leave out some hours of a date."""
    return [
        part
        for calendar in calendars
        for part in (_without(calendar, day, hours) if calendar in affected else [calendar])
    ]


def _without(calendar: Calendar, day: date, hours: set[int]) -> Iterator[Calendar]:
    """A calendar in parts, which leave out some hours of a date."""
    if not calendar.names_date(day) or hours.isdisjoint(calendar.hours):
        yield calendar
        return
    year, month, on_day = (day.year,), (day.month,), (day.day,)
    parts = (
        replace(calendar, years=_rest(calendar.years, year)),
        replace(calendar, years=year, months=_rest(calendar.months, month)),
        replace(calendar, years=year, months=month, days=_rest(calendar.days, on_day)),
        replace(
            calendar, years=year, months=month, days=on_day, hours=_rest(calendar.hours, hours)
        ),
    )
    yield from (one for one in parts if one.years and one.months and one.days and one.hours)


def _rest(values: tuple[int, ...], left_out: Iterable[int]) -> tuple[int, ...]:
    return tuple(value for value in values if value not in set(left_out))


def _next(calendars: Iterable[Calendar], zone: ZoneInfo, moment: datetime) -> datetime | None:
    """The first time later than `moment` at which Temporal fires."""
    found = (_calendar_next(calendar, zone, moment) for calendar in calendars)
    return min((one for one in found if one is not None), default=None)


def _calendar_next(calendar: Calendar, zone: ZoneInfo, moment: datetime) -> datetime | None:
    local = moment.astimezone(zone)
    hour = local.replace(tzinfo=None, minute=0, second=0, microsecond=0)
    minute = local.minute + 1
    while hour.year <= calendar.years[-1]:
        if not _has_times(calendar, hour, zone):
            hour, minute = _next_day(calendar, hour), 0
            continue
        if hour.hour not in calendar.hours:
            # It does not look at the day again.
            minute = 0
            later = next((one for one in calendar.hours if one > hour.hour), None)
            hour = hour.replace(hour=0) + _DAY if later is None else hour.replace(hour=later)
            if later is None:
                continue
        if (match := next(filter(minute.__le__, calendar.minutes), None)) is not None:
            due = _instant(hour.replace(minute=match), zone)
            # Else the clock skips this hour.
            if due.astimezone(zone).hour == hour.hour:
                return due
        hour, minute = hour + _HOUR, 0
    return None


def _has_times(calendar: Calendar, hour: datetime, zone: ZoneInfo) -> bool:
    """True when all day fields match. Where the clock skips midnight, the weekday may be that of
    the day before."""
    if not calendar.names_date(hour):
        return False
    return _instant(hour, zone).astimezone(zone).isoweekday() % 7 in calendar.weekdays


def _next_day(calendar: Calendar, hour: datetime) -> datetime:
    """Midnight of the day that may match next."""
    midnight = hour.replace(hour=0)
    if hour.month in calendar.months:
        return midnight + _DAY
    return (midnight.replace(day=1) + 32 * _DAY).replace(day=1)


def _instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, at which the local clock shows `wall`.

    Of two such moments it is the one Temporal takes: the later one east of Greenwich, the earlier
    one west of it. A time that the clock skips becomes one as long before or after the gap.
    """
    local = wall.replace(tzinfo=UTC)
    return local - timetables.offset_at(local - timetables.offset_at(local, zone), zone)

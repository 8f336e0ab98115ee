"""Periods of days that the operators `within` and `relative` name, in a time zone.

A period is half-open: its first day and the day after its last. Weeks begin on Monday (ISO 8601).
"""

from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import partial
from zoneinfo import ZoneInfo

Days = tuple[date, date]

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Unit(StrEnum):
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


CLOCK_UNITS = {Unit.MINUTE: timedelta(minutes=1), Unit.HOUR: timedelta(hours=1)}


class Direction(StrEnum):
    PAST = "past"
    FUTURE = "future"


def shift_months(day: date, months: int) -> date:
    """The same day of another month, or that month's last day. Raises `OverflowError`."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not date.min.year <= year <= date.max.year:
        raise OverflowError("beyond the calendar")
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def shift_days(day: date, unit: Unit, count: int) -> date:
    """A day moved by calendar units. Raises `OverflowError`."""
    if unit is Unit.MONTH:
        return shift_months(day, count)
    if unit is Unit.YEAR:
        return shift_months(day, 12 * count)
    return day + timedelta(days=count * (7 if unit is Unit.WEEK else 1))


def shift_moment(moment: datetime, unit: Unit, count: int, zone: ZoneInfo) -> datetime:
    """A moment moved by clock time, or by calendar units on the zone's wall clock."""
    if unit in CLOCK_UNITS:
        return moment + CLOCK_UNITS[unit] * count
    local = moment.astimezone(zone)
    shifted = shift_days(local.date(), unit, count)
    return datetime.combine(shifted, local.time(), tzinfo=zone).astimezone(UTC)


def start_of(day: date, zone: ZoneInfo) -> datetime:
    """The moment a day begins in a zone, in UTC; for the calendar's ends its first or last one."""
    try:
        return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
    except OverflowError:
        return _FIRST if day.year == date.min.year else _LAST


def end_of(day: date, zone: ZoneInfo) -> datetime:
    """The moment the next day begins in a zone; of the calendar's last day its last moment."""
    return _LAST if day == date.max else start_of(day + timedelta(days=1), zone)


def _day(today: date, step: int) -> Days:
    first = today + timedelta(days=step)
    return first, first + timedelta(days=1)


def _week(today: date, step: int) -> Days:
    first = today + timedelta(days=7 * step - today.weekday())
    return first, first + timedelta(days=7)


def _months(length: int, today: date, step: int) -> Days:
    first = today.replace(month=(today.month - 1) // length * length + 1, day=1)
    return shift_months(first, step * length), shift_months(first, (step + 1) * length)


_PERIODS: dict[str, tuple[Callable[[date, int], Days], int]] = {
    "today": (_day, 0),
    "yesterday": (_day, -1),
    "tomorrow": (_day, 1),
    **{
        f"{which}_{name}": (period, step)
        for name, period in (
            ("week", _week),
            ("month", partial(_months, 1)),
            ("quarter", partial(_months, 3)),
            ("year", partial(_months, 12)),
        )
        for which, step in (("last", -1), ("this", 0), ("next", 1))
    },
}

PERIODS = tuple(_PERIODS)


def period_days(name: str, today: date) -> Days:
    """The days a name such as `last_month` stands for. Raises `OverflowError`."""
    period, step = _PERIODS[name]
    return period(today, step)

"""Operands of operators read into conditions on a value; days, durations, named periods.

Five conditions are enough: membership, a range, a piece of text, elements of a list, emptiness. A
period is half-open: its first day and the day after its last. Weeks begin on Monday (ISO 8601).
"""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from models.core import values
from models.core.filters.grammar import LISTS, Op, ValueForm
from models.core.values import InvalidValueError
from runtime.clock import truncate

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
        raise OverflowError("outside the calendar")
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


Scalar = str | bool | Decimal | datetime


@dataclass(frozen=True, slots=True)
class In:
    """The value is one of these."""

    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The value lies between two bounds, of which either may be missing."""

    low: Scalar | None = None
    high: Scalar | None = None
    with_low: bool = True
    with_high: bool = True


class Anchor(StrEnum):
    ANYWHERE = "anywhere"
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class Substring:
    """The text contains another, in any case of its letters."""

    text: str
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Has:
    """The list has any, or every one, of these elements."""

    elements: tuple[Any, ...]
    every: bool


@dataclass(frozen=True, slots=True)
class Empty:
    """There is nothing: no value, an empty text, an empty list or an empty object."""


Condition = In | Range | Substring | Has | Empty


def list_of(operand: object) -> list[Any]:
    """The values of a list. Raises `InvalidValueError`."""
    if not isinstance(operand, list):
        raise InvalidValueError("must be a list of values")
    return operand


def pair_of(operand: object) -> tuple[Any, Any]:
    """The two ends of a range. Raises `InvalidValueError`."""
    if not isinstance(operand, list) or len(operand) != 2:
        raise InvalidValueError("must be a list of two values, the lower one first")
    return operand[0], operand[1]


def ordered(span: Range) -> Range:
    """The range, when its lower end is not the higher one. Raises `InvalidValueError`."""
    if span.low is not None and span.high is not None and span.low > span.high:  # type: ignore[operator]  # both were read by one reader
        raise InvalidValueError("must be a list of two values, the lower one first")
    return span


MAX_COUNT = 10_000


def calendar_condition(
    op: Op, form: ValueForm, operand: object, now: datetime, zone: ZoneInfo
) -> Condition:
    """The condition that an operator makes with days or moments, both read in a time zone.

    Raises `InvalidValueError`, and `OverflowError` for what lies outside the calendar.
    """
    if op is Op.IN:
        read = _day_text if form is ValueForm.DAY else _instant
        return In(tuple(read(value) for value in list_of(operand)))
    if op is Op.WITHIN:
        return _within(form, operand, now, zone)
    if op is Op.RELATIVE:
        first, after = period_days(_period(operand), now.astimezone(zone).date())
        return _days(form, first, after, zone)
    read_span = _day_span if form is ValueForm.DAY else _moment_span
    return _span_condition(op, operand, lambda value: read_span(value, zone))


@dataclass(frozen=True, slots=True)
class _Span:
    """The span of a calendar operand: one point, or a whole day up to its (excluded) end."""

    start: str | datetime
    end: str | datetime
    point: bool


def _span_condition(op: Op, operand: object, read: Callable[[Any], _Span]) -> Condition:
    if op is Op.BETWEEN:
        lower, upper = (read(value) for value in pair_of(operand))
        return ordered(Range(lower.start, upper.end, with_high=upper.point))
    span = read(operand)
    match op:
        case Op.GT | Op.AFTER:
            return Range(low=span.end, with_low=not span.point)
        case Op.GTE:
            return Range(low=span.start)
        case Op.LT | Op.BEFORE:
            return Range(high=span.start, with_high=False)
        case Op.LTE:
            return Range(high=span.end, with_high=span.point)
        case _:
            return Range(span.start, span.end, with_high=span.point)


def _day_span(value: object, _zone: ZoneInfo) -> _Span:
    text = _day_text(value)
    return _Span(text, text, point=True)


def _moment_span(value: object, zone: ZoneInfo) -> _Span:
    """A moment is a point; a date is the whole day as the zone has it."""
    if isinstance(value, str) and "T" in value:
        point = _instant(value)
        return _Span(point, point, point=True)
    day = values.day(value)
    return _Span(start_of(day, zone), end_of(day, zone), point=False)


def _day_text(value: object) -> str:
    return values.day(value).isoformat()


def _instant(value: object) -> datetime:
    return truncate(values.moment(value))


def _days(form: ValueForm, first: date, after: date, zone: ZoneInfo) -> Range:
    """The range of whole days from `first` up to, and without, `after`."""
    if form is ValueForm.DAY:
        return Range(first.isoformat(), after.isoformat(), with_high=False)
    return Range(start_of(first, zone), start_of(after, zone), with_high=False)


def _period(operand: object) -> str:
    if not isinstance(operand, str) or operand not in PERIODS:
        raise InvalidValueError(f"must be one of: {', '.join(PERIODS)}")
    return operand


def _within(form: ValueForm, operand: object, now: datetime, zone: ZoneInfo) -> Range:
    unit, count = _duration(operand)
    if form is ValueForm.DAY:
        if unit in CLOCK_UNITS:
            raise InvalidValueError("must be in days or longer units for a date without a time")
        today = now.astimezone(zone).date()
        ends = sorted([today, shift_days(today, unit, count)])
        return Range(ends[0].isoformat(), ends[1].isoformat())
    first, last = sorted([now.astimezone(UTC), shift_moment(now, unit, count, zone)])
    return Range(truncate(first), truncate(last))


def _duration(operand: object) -> tuple[Unit, int]:
    """`{unit, count, direction}` as a unit and a count that is negative for the past."""
    if not isinstance(operand, dict) or operand.keys() != {"unit", "count", "direction"}:
        raise InvalidValueError("must be an object with unit, count and direction")
    unit, direction = operand["unit"], operand["direction"]
    if unit not in list(Unit):
        raise InvalidValueError(f"must have a unit that is one of: {', '.join(Unit)}")
    if direction not in list(Direction):
        raise InvalidValueError("must have a direction that is past or future")
    count = values.whole_number(operand["count"], 1, MAX_COUNT)
    return Unit(unit), -count if direction == Direction.PAST else count


_CALENDAR = frozenset({ValueForm.DAY, ValueForm.MOMENT})


def read_condition(
    op: Op,
    form: ValueForm,
    read_one: Callable[[Any], Any],
    operand: object,
    now: datetime,
    zone: ZoneInfo,
) -> Condition:
    """The condition that a positive operator of a form makes with its operand.

    `read_one` reads one value, or one element of a list, that the form is compared with. Raises
    `InvalidValueError` when the operand is not of the form.
    """
    if op is Op.IS_EMPTY:
        if operand not in (None, True):
            raise InvalidValueError("must not be set for this operator")
        return Empty()
    if operand is None:
        raise InvalidValueError("must not be null; use is_empty to find empty values")
    if form in LISTS:
        elements = [operand] if op is Op.CONTAINS else list_of(operand)
        return Has(tuple(read_one(value) for value in elements), op is Op.HAS_ALL)
    if form in _CALENDAR:
        try:
            return calendar_condition(op, form, operand, now, zone)
        except OverflowError as error:
            raise InvalidValueError("is outside the calendar") from error
    return _plain(op, read_one, operand)


def _plain(op: Op, read: Callable[[Any], Any], operand: object) -> Condition:
    match op:
        case Op.EQ:
            return In(values.spellings(read(operand)))
        case Op.IN:
            members = (values.spellings(read(value)) for value in list_of(operand))
            return In(tuple(chain.from_iterable(members)))
        case Op.BETWEEN:
            low, high = pair_of(operand)
            return ordered(Range(read(low), read(high)))
        case Op.GT | Op.AFTER:
            return Range(low=read(operand), with_low=False)
        case Op.GTE:
            return Range(low=read(operand))
        case Op.LT | Op.BEFORE:
            return Range(high=read(operand), with_high=False)
        case Op.LTE:
            return Range(high=read(operand))
        case _:
            anchors = {Op.STARTS_WITH: Anchor.START, Op.ENDS_WITH: Anchor.END}
            return Substring(read(operand), anchors.get(op, Anchor.ANYWHERE))

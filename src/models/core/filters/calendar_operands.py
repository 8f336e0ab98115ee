"""Operands of date and datetime fields: days, moments, durations and named periods."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from models.core import values
from models.core.filters.calendar import (
    CLOCK_UNITS,
    PERIODS,
    Direction,
    Unit,
    end_of,
    period_days,
    shift_days,
    shift_moment,
    start_of,
)
from models.core.filters.conditions import Condition, In, Range, list_of, ordered, pair_of
from models.core.filters.forms import ValueForm
from models.core.filters.operators import Op
from models.core.values import InvalidValueError
from runtime.timestamps import truncate

MAX_COUNT = 10_000


def calendar_condition(
    op: Op, form: ValueForm, operand: object, now: datetime, zone: ZoneInfo
) -> Condition:
    """The condition that an operator makes with days or moments, both read in a time zone.

    Raises `InvalidValueError`, and `OverflowError` for what lies beyond the calendar.
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

"""From an operator and its operand to a test of the stored value.

Five tests are enough: membership, a range, a piece of text, elements of a list, emptiness.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from models.databases.rules import values
from models.databases.rules.fields import FieldSpec
from models.databases.rules.registry import KIND_RULES, Comparison
from models.databases.rules.values import FieldValueError
from models.records.rules.calendar import (
    CLOCK_UNITS,
    PERIODS,
    Direction,
    Unit,
    period_days,
    shift_days,
    shift_moment,
    start_of,
)
from models.records.rules.operators import Op
from runtime.clock import truncate

MAX_OPERANDS = 500
MAX_COUNT = 10_000

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


class Where(StrEnum):
    ANYWHERE = "anywhere"
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class Piece:
    """The text contains another, whatever the case of its letters."""

    text: str
    where: Where


@dataclass(frozen=True, slots=True)
class Has:
    """The list has any, or every one, of these elements."""

    elements: tuple[str, ...]
    every: bool


@dataclass(frozen=True, slots=True)
class Empty:
    """There is no value: absent, an empty text or an empty list."""


Test = In | Range | Piece | Has | Empty


def read_test(op: Op, field: FieldSpec, operand: Any, now: datetime, zone: ZoneInfo) -> Test:
    """The test that a positive operator makes with its operand.

    Raises `FieldValueError` when the operand is not of the field's type.
    """
    comparison = KIND_RULES[field.kind].comparison if field.kind in KIND_RULES else None
    if op is Op.IS_EMPTY:
        if operand not in (None, True):
            raise FieldValueError("is not needed for this operator")
        return Empty()
    if operand is None:
        raise FieldValueError("must not be null; empty values are found with is_empty")
    if comparison in {Comparison.OPTIONS, Comparison.USERS}:
        return _set_test(op, field, operand)
    if comparison in {Comparison.DAY, Comparison.MOMENT}:
        try:
            return _calendar_test(op, comparison, operand, now, zone)
        except OverflowError as error:
            raise FieldValueError("reaches beyond the calendar") from error
    return _plain_test(op, _scalar_reader(field), operand)


def _plain_test(op: Op, read: Callable[[Any], Scalar], operand: Any) -> Test:
    match op:
        case Op.EQ:
            return In((read(operand),))
        case Op.IN:
            return In(tuple(read(value) for value in _list(operand)))
        case Op.BETWEEN:
            low, high = _pair(operand)
            return _ordered(Range(read(low), read(high)))
        case Op.GT | Op.AFTER:
            return Range(low=read(operand), with_low=False)
        case Op.GTE:
            return Range(low=read(operand))
        case Op.LT | Op.BEFORE:
            return Range(high=read(operand), with_high=False)
        case Op.LTE:
            return Range(high=read(operand))
        case _:
            return _piece(op, operand)


def _piece(op: Op, operand: Any) -> Piece:
    where = {Op.STARTS_WITH: Where.START, Op.ENDS_WITH: Where.END}.get(op, Where.ANYWHERE)
    return Piece(values.text(operand), where)


def _scalar_reader(field: FieldSpec) -> Callable[[Any], Scalar]:
    match KIND_RULES[field.kind].comparison:
        case Comparison.NUMBER:
            return _number
        case Comparison.BOOLEAN:
            return lambda value: values.check_checkbox(field, value)
        case Comparison.TIME:
            return lambda value: values.check_time(field, value)
        case Comparison.OPTION:
            return lambda value: _option(field, value)
        case Comparison.USER:
            return values.user
        case _:
            return values.text


def _number(value: Any) -> Decimal:
    return Decimal(repr(values.number(value)))


def _option(field: FieldSpec, value: Any) -> str:
    """A key that exists, or any text where records may bring options that do not exist yet."""
    if field.settings.get("allowCreate"):
        return values.text(value)
    return values.check_option(field, value)


def _set_test(op: Op, field: FieldSpec, operand: Any) -> Has:
    elements = [operand] if op is Op.CONTAINS else _list(operand)
    if KIND_RULES[field.kind].comparison is Comparison.USERS:
        return Has(tuple(values.user(value) for value in elements), op is Op.HAS_ALL)
    return Has(tuple(_option(field, value) for value in elements), op is Op.HAS_ALL)


def _list(operand: Any) -> list[Any]:
    if not isinstance(operand, list) or len(operand) > MAX_OPERANDS:
        raise FieldValueError(f"must be a list of at most {MAX_OPERANDS} values")
    return operand


def _pair(operand: Any) -> tuple[Any, Any]:
    if not isinstance(operand, list) or len(operand) != 2:
        raise FieldValueError("must be a list of two values, the lower one first")
    return operand[0], operand[1]


def _ordered(span: Range) -> Range:
    if span.low is not None and span.high is not None and span.low > span.high:  # type: ignore[operator]  # both were read by one reader
        raise FieldValueError("must be a list of two values, the lower one first")
    return span


def _calendar_test(
    op: Op, comparison: Comparison, operand: Any, now: datetime, zone: ZoneInfo
) -> Test:
    if op is Op.IN:
        read = _day_text if comparison is Comparison.DAY else _instant
        return In(tuple(read(value) for value in _list(operand)))
    if op is Op.WITHIN:
        return _within(comparison, operand, now, zone)
    if op is Op.RELATIVE:
        first, after = period_days(_period(operand), now.astimezone(zone).date())
        return _days(comparison, first, after, zone)
    read_span = _day_span if comparison is Comparison.DAY else _moment_span
    return _span_test(op, operand, lambda value: read_span(value, zone))


@dataclass(frozen=True, slots=True)
class _Span:
    """What a calendar operand covers: one point, or a whole day up to its (excluded) end."""

    start: str | datetime
    end: str | datetime
    point: bool


def _span_test(op: Op, operand: Any, read: Callable[[Any], _Span]) -> Test:
    if op is Op.BETWEEN:
        lower, upper = (read(value) for value in _pair(operand))
        return _ordered(Range(lower.start, upper.end, with_high=upper.point))
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


def _day_span(value: Any, _zone: ZoneInfo) -> _Span:
    text = _day_text(value)
    return _Span(text, text, point=True)


def _moment_span(value: Any, zone: ZoneInfo) -> _Span:
    """A moment is a point; a date is the whole day as the zone has it."""
    if isinstance(value, str) and "T" in value:
        point = _instant(value)
        return _Span(point, point, point=True)
    day = values.day(value)
    return _Span(start_of(day, zone), start_of(day + timedelta(days=1), zone), point=False)


def _day_text(value: Any) -> str:
    return values.day(value).isoformat()


def _instant(value: Any) -> datetime:
    return truncate(values.moment(value))


def _days(comparison: Comparison, first: date, after: date, zone: ZoneInfo) -> Range:
    """The range of whole days from `first` up to, and without, `after`."""
    if comparison is Comparison.DAY:
        return Range(first.isoformat(), after.isoformat(), with_high=False)
    return Range(start_of(first, zone), start_of(after, zone), with_high=False)


def _period(operand: Any) -> str:
    if not isinstance(operand, str) or operand not in PERIODS:
        raise FieldValueError(f"must be one of: {', '.join(PERIODS)}")
    return operand


def _within(comparison: Comparison, operand: Any, now: datetime, zone: ZoneInfo) -> Range:
    unit, count = _stretch(operand)
    if comparison is Comparison.DAY:
        if unit in CLOCK_UNITS:
            raise FieldValueError("must be in days or longer units for a date without a time")
        today = now.astimezone(zone).date()
        ends = sorted([today, shift_days(today, unit, count)])
        return Range(ends[0].isoformat(), ends[1].isoformat())
    first, last = sorted([now.astimezone(UTC), shift_moment(now, unit, count, zone)])
    return Range(truncate(first), truncate(last))


def _stretch(operand: Any) -> tuple[Unit, int]:
    """`{unit, count, direction}` as a unit and a count that is negative for the past."""
    if not isinstance(operand, dict) or operand.keys() != {"unit", "count", "direction"}:
        raise FieldValueError("must be an object with unit, count and direction")
    unit, direction = operand["unit"], operand["direction"]
    if unit not in list(Unit):
        raise FieldValueError(f"must have a unit that is one of: {', '.join(Unit)}")
    if direction not in list(Direction):
        raise FieldValueError("must have a direction that is past or future")
    count = values.whole_number(operand["count"], 1, MAX_COUNT)
    return Unit(unit), -count if direction == Direction.PAST else count

"""Filters evaluated on values at hand, typed ones and JSON."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from models.core.filters import operands
from models.core.filters.grammar import OPERATORS, AllOf, AnyOf, Filter, Not, Op, ValueForm
from models.core.values import InvalidValueError, same_json, spellings

L = TypeVar("L")

_LOWERED = str.maketrans({"\u0130": "i", "\u03a3": "\u03c3"})
"""Letters that `str.lower` alone makes two of, or makes one of by what stands beside them."""


def holds(tree: Filter[L], passes: Callable[[L], bool]) -> bool:
    """True when a filter holds; `passes` says so of each of its leaves."""
    match tree:
        case Not(part):
            return not holds(part, passes)
        case AllOf(parts):
            return all(holds(part, passes) for part in parts)
        case AnyOf(parts):
            return any(holds(part, passes) for part in parts)
        case leaf:
            return passes(leaf)


def meets(condition: operands.Condition, value: object) -> bool:
    """True when a value meets a condition of its form; None is no value."""
    match condition:
        case operands.Empty():
            return is_empty(value)
        case operands.In(members):
            return any(same_json(value, member) for member in members)
        case operands.Range():
            return value is not None and lies_in(value, condition)
        case operands.Substring(text, anchor):
            return isinstance(value, str) and any(
                _has_text(fold(value), fold(one), anchor) for one in spellings(text)
            )
        case operands.Has(elements, every):
            if not isinstance(value, list):
                return False
            matches = (any(same_json(element, item) for item in value) for element in elements)
            return all(matches) if every else any(matches)


def is_empty(value: object) -> bool:
    """True when there is nothing: no value, an empty text, an empty list or an empty object."""
    return value is None or value in ("", [], {})


def fold(text: str) -> str:
    """A text without the case of its letters, each letter by itself, as PostgreSQL has it."""
    return text.lower() if text.isascii() else text.translate(_LOWERED).lower()


def lies_in(value: Any, span: operands.Range) -> bool:
    """True when a value lies in a range of values that it can be ordered with."""
    if span.low is not None and not (value >= span.low if span.with_low else value > span.low):
        return False
    return span.high is None or bool(value <= span.high if span.with_high else value < span.high)


def _has_text(value: str, text: str, anchor: operands.Anchor) -> bool:
    match anchor:
        case operands.Anchor.START:
            return value.startswith(text)
        case operands.Anchor.END:
            return value.endswith(text)
        case operands.Anchor.ANYWHERE:
            return text in value


_WITH_A_DATE = frozenset({Op.BEFORE, Op.AFTER, Op.ON})
_TELL_TIME = frozenset({*_WITH_A_DATE, Op.WITHIN, Op.RELATIVE})
_ONE_OR_MANY = frozenset({Op.HAS_ANY, Op.HAS_ALL})

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_UTC = ZoneInfo("UTC")


def passes(op: Op, value: JsonValue, operand: object, now: datetime, zone: ZoneInfo) -> bool:
    """True when a JSON value passes a positive operator.

    Raises `InvalidValueError` for an operand of `between`, `within` or `relative` that cannot be
    read.

    A value of another form than the operand is unequal to it, and comes neither before nor after
    it. Text is a date or a moment for the operators that tell time.
    """
    match op:
        case Op.IS_EMPTY:
            return is_empty(value)
        case Op.EQ:
            return any(same_json(value, one) for one in spellings(operand))
        case Op.IN:
            return isinstance(operand, list) and any(
                same_json(value, one) for member in operand for one in spellings(member)
            )
        case Op.BETWEEN:
            operands.pair_of(operand)
    if op in _TELL_TIME:
        return _passes_in_time(op, value, operand, now, zone)
    form = _form_of(value)
    if form is None or op not in OPERATORS[form]:
        return False
    if op in _ONE_OR_MANY and not isinstance(operand, list):
        operand = [operand]
    if isinstance(value, list) and op is Op.CONTAINS and operand is None:
        return None in value
    try:
        condition = operands.read_condition(op, form, _READERS[form], operand, now, zone)
    except InvalidValueError:
        return False
    return meets(condition, _number(value) if form is ValueForm.NUMBER else value)


def check_operand(op: Op, operand: object) -> None:
    """Raises `InvalidValueError` for an operand that says nothing, with any value beside it."""
    if op in _WITH_A_DATE:
        if _read_time(operand, _UTC) is None:
            raise InvalidValueError("must be a date, or a date and time, as in ISO 8601")
    elif op in _TELL_TIME:
        operands.read_condition(op, ValueForm.MOMENT, _any, operand, _ANY_TIME, _UTC)
    elif op is Op.BETWEEN:
        operands.pair_of(operand)


def _form_of(value: JsonValue) -> ValueForm | None:
    match value:
        case bool():
            return ValueForm.BOOLEAN
        case int() | float():
            return ValueForm.NUMBER
        case str():
            return ValueForm.TEXT
        case list():
            return ValueForm.VALUES
    return None


def _any(operand: object) -> object:
    return operand


def _text(operand: object) -> str:
    if not isinstance(operand, str):
        raise InvalidValueError("must be text")
    return operand


def _number(operand: object) -> Decimal:
    if isinstance(operand, bool) or not isinstance(operand, int | float):
        raise InvalidValueError("must be a number")
    return Decimal(repr(operand))


_READERS = {
    ValueForm.BOOLEAN: _any,
    ValueForm.NUMBER: _number,
    ValueForm.TEXT: _text,
    ValueForm.VALUES: _any,
}


def _passes_in_time(
    op: Op, value: JsonValue, operand: object, now: datetime, zone: ZoneInfo
) -> bool:
    """Dates begin, and moments without an offset are read, in the zone.

    A date beside a moment is the start of its day.
    """
    time = _read_time(value, zone)
    if op in _WITH_A_DATE and (operand := _read_time(operand, zone)) is None:
        return False
    if time is None:
        return False
    if isinstance(operand, datetime):
        time = _moment(time, zone)
    if isinstance(operand, date):
        operand = operand.isoformat()
    moment = isinstance(time, datetime)
    form = ValueForm.MOMENT if moment else ValueForm.DAY
    condition = operands.read_condition(op, form, _any, operand, now, zone)
    return meets(condition, time if moment else time.isoformat())


def _read_time(value: object, zone: ZoneInfo) -> date | datetime | None:
    if not isinstance(value, str):
        return None
    try:
        if len(value) == len("2026-01-31"):
            return date.fromisoformat(value)
        return _moment(datetime.fromisoformat(value), zone)
    except (ValueError, OverflowError):
        return None


def _moment(value: date | datetime, zone: ZoneInfo) -> datetime:
    if not isinstance(value, datetime):
        return operands.start_of(value, zone)
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)

"""The operators of filters that tell time, over JSON values that are dates or moments (C5)."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from models.core.expressions.rules.errors import BindingError
from models.core.filters.calendar import start_of
from models.core.filters.calendar_operands import calendar_test
from models.core.filters.conditions import Range
from models.core.filters.forms import ValueForm
from models.core.filters.operators import Op
from models.core.values import InvalidValueError
from models.data.records.rules.query.memory import lies_in

_WITH_A_DATE = frozenset({Op.BEFORE, Op.AFTER, Op.ON})
TELL_TIME = frozenset({*_WITH_A_DATE, Op.WITHIN, Op.RELATIVE})

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_UTC = ZoneInfo("UTC")


def in_time(op: Op, found: Any, operand: Any, now: datetime, zone: ZoneInfo) -> bool:
    """Whether what was found passes; what is neither a date nor a moment does not.

    Dates begin, and moments without an offset are read, in the zone. A date beside a moment is the
    start of its day. Raises BindingError for a `within` or `relative` that cannot be read.
    """
    value = _read(found, zone)
    if op in _WITH_A_DATE and (operand := _read(operand, zone)) is None:
        return False
    if value is None:
        return False
    if isinstance(operand, datetime):
        value = _moment(value, zone)
    return lies_in(_stored(value), _range(op, value, operand, now, zone))


def operand_problem(op: Op, operand: Any) -> str | None:
    """What is wrong with an operand of one of these operators, whatever it is compared with."""
    if op in _WITH_A_DATE:
        readable = _read(operand, _UTC) is not None
        return None if readable else "must be a date, or a date and time, as in ISO 8601"
    try:
        _range(op, _ANY_TIME, operand, _ANY_TIME, _UTC)
    except BindingError as error:
        return error.message
    return None


def _read(value: Any, zone: ZoneInfo) -> date | datetime | None:
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
        return start_of(value, zone)
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)


def _stored(value: date | datetime) -> str | datetime:
    """The form in which filters of queries compare a value."""
    return value if isinstance(value, datetime) else value.isoformat()


def _range(op: Op, value: date | datetime, operand: Any, now: datetime, zone: ZoneInfo) -> Range:
    form = ValueForm.MOMENT if isinstance(value, datetime) else ValueForm.DAY
    if isinstance(operand, date):
        operand = operand.isoformat()
    try:
        test = calendar_test(op, form, operand, now, zone)
    except InvalidValueError as error:
        raise BindingError(f'The value of "{op}" {error}.') from None
    except OverflowError:
        raise BindingError(f'The value of "{op}" lies beyond the calendar.') from None
    assert isinstance(test, Range), "these operators ask where in time a value lies"
    return test

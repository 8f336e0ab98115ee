"""From an operator and its operand to a condition of a value of some form."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from models.core.filters.calendar_operands import calendar_condition
from models.core.filters.conditions import (
    Anchor,
    Condition,
    Empty,
    Has,
    In,
    Range,
    Substring,
    list_of,
    ordered,
    pair_of,
)
from models.core.filters.forms import LISTS, ValueForm
from models.core.filters.operators import Op
from models.core.values import InvalidValueError

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
            raise InvalidValueError("is not needed for this operator")
        return Empty()
    if operand is None:
        raise InvalidValueError("must not be null; empty values are found with is_empty")
    if form in LISTS:
        elements = [operand] if op is Op.CONTAINS else list_of(operand)
        return Has(tuple(read_one(value) for value in elements), op is Op.HAS_ALL)
    if form in _CALENDAR:
        try:
            return calendar_condition(op, form, operand, now, zone)
        except OverflowError as error:
            raise InvalidValueError("reaches beyond the calendar") from error
    return _plain(op, read_one, operand)


def _plain(op: Op, read: Callable[[Any], Any], operand: object) -> Condition:
    match op:
        case Op.EQ:
            return In((read(operand),))
        case Op.IN:
            return In(tuple(read(value) for value in list_of(operand)))
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

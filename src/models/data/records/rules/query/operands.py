"""From an operator and its operand to a test of the stored value."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from models.core import values as core_values
from models.core.filters.calendar_operands import calendar_test
from models.core.filters.conditions import (
    Empty,
    Has,
    In,
    Piece,
    Range,
    Scalar,
    Test,
    Where,
    list_of,
    ordered,
    pair_of,
)
from models.core.filters.forms import LISTS, ValueForm
from models.core.filters.operators import Op
from models.core.values import InvalidValueError
from models.data.databases.rules import values
from models.data.databases.rules.fields import FieldSpec
from models.data.databases.rules.registry import value_form
from runtime.ids import parse_id


def read_test(op: Op, field: FieldSpec, operand: Any, now: datetime, zone: ZoneInfo) -> Test:
    """The test that a positive operator makes with its operand.

    Raises `InvalidValueError` when the operand is not of the field's type.
    """
    form = value_form(field)
    if op is Op.IS_EMPTY:
        if operand not in (None, True):
            raise InvalidValueError("is not needed for this operator")
        return Empty()
    if operand is None:
        raise InvalidValueError("must not be null; empty values are found with is_empty")
    if form in LISTS:
        return _set_test(op, field, operand)
    if form in {ValueForm.DAY, ValueForm.MOMENT}:
        try:
            return calendar_test(op, form, operand, now, zone)
        except OverflowError as error:
            raise InvalidValueError("reaches beyond the calendar") from error
    return _plain_test(op, _scalar_reader(field), operand)


def _plain_test(op: Op, read: Callable[[Any], Scalar], operand: Any) -> Test:
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
            return _piece(op, operand)


def _piece(op: Op, operand: Any) -> Piece:
    where = {Op.STARTS_WITH: Where.START, Op.ENDS_WITH: Where.END}.get(op, Where.ANYWHERE)
    return Piece(core_values.text(operand), where)


def _scalar_reader(field: FieldSpec) -> Callable[[Any], Scalar]:
    match value_form(field):
        case ValueForm.NUMBER:
            return _number
        case ValueForm.BOOLEAN:
            return lambda value: values.check_checkbox(field, value)
        case ValueForm.TIME:
            return lambda value: values.check_time(field, value)
        case ValueForm.OPTION:
            return lambda value: _option(field, value)
        case ValueForm.USER:
            return values.user
        case _:
            return core_values.text


def _number(value: Any) -> Decimal:
    return Decimal(repr(core_values.number(value)))


def _option(field: FieldSpec, value: Any) -> str:
    """A key that exists, or any text where records may bring options that do not exist yet."""
    if field.settings.get("allowCreate"):
        return core_values.text(value)
    return values.check_option(field, value)


def _set_test(op: Op, field: FieldSpec, operand: Any) -> Has:
    elements = [operand] if op is Op.CONTAINS else list_of(operand)
    return Has(tuple(_element(field, value) for value in elements), op is Op.HAS_ALL)


def _element(field: FieldSpec, value: Any) -> Any:
    match value_form(field):
        case ValueForm.OPTIONS:
            return _option(field, value)
        case ValueForm.USERS:
            return values.user(value)
        case ValueForm.FILES:
            return _id(value, "file")
        case ValueForm.RECORDS:
            return _id(value, "record")
        case _:
            return _scalar(value)


def _id(value: Any, noun: str) -> str:
    checked = parse_id(value) if isinstance(value, str) else None
    if checked is None:
        raise InvalidValueError(f"must be the id of a {noun}")
    return str(checked)


def _scalar(value: Any) -> str | bool | int | float:
    """Anything that a looked-up list can hold: text, a number, true or false."""
    if isinstance(value, bool):
        return value
    return core_values.number(value) if isinstance(value, int | float) else core_values.text(value)

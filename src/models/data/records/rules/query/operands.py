"""Reading the operands that values of a field are compared with."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from models.core.filters.forms import ValueForm
from models.core.problems import an
from models.core.values import InvalidValueError, number, text
from models.data.fields.rules import values
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.registry import value_form
from runtime.ids import parse_id

Reader = Callable[[Any], Any]


def operand_reader(field: FieldSpec) -> Reader:
    """Reads one value, or one element of a list, of a field's type.

    The reader raises `InvalidValueError`.
    """
    match value_form(field):
        case ValueForm.NUMBER:
            return _number
        case ValueForm.BOOLEAN:
            return lambda value: values.check_checkbox(field, value)
        case ValueForm.TIME:
            return lambda value: values.check_time(field, value)
        case ValueForm.OPTION | ValueForm.OPTIONS:
            return lambda value: _option(field, value)
        case ValueForm.USER | ValueForm.USERS:
            return values.user
        case ValueForm.FILES:
            return lambda value: _id(value, "file")
        case ValueForm.RECORDS:
            return lambda value: _id(value, "record")
        case ValueForm.VALUES:
            return _scalar
        case _:
            return text


def _number(value: object) -> Decimal:
    return Decimal(repr(number(value)))


def _option(field: FieldSpec, value: object) -> str:
    """A key that exists, or any text where records may bring options that do not exist yet."""
    if field.settings.get("allowCreate"):
        return field.option_key(text(value)) or text(value)
    return values.check_option(field, value)


def _id(value: object, noun: str) -> str:
    checked = parse_id(value) if isinstance(value, str) else None
    if checked is None:
        raise InvalidValueError(f"must be the id of {an(noun)}")
    return str(checked)


def _scalar(value: object) -> str | bool | int | float:
    """Anything that a looked-up list can hold: text, a number, true or false."""
    if isinstance(value, bool):
        return value
    return number(value) if isinstance(value, int | float) else text(value)

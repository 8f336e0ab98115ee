"""Filters whose leaves name fields: operands read by kind, evaluated on values at hand."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from models.core.filters import evaluation, grammar
from models.core.filters.operands import Condition, In, Range, Scalar, read_condition
from models.core.problems import an
from models.core.values import InvalidValueError, number, stored_moment, text
from models.data.fields.rules import values
from models.data.fields.rules.fields import FieldSpec, FieldSpecs, no_field
from models.data.fields.rules.settings import zone
from models.data.fields.rules.values import value_form
from runtime.errors import Detail, ValidationError
from runtime.ids import parse_id

MAX_OPERANDS = 500


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition of one field."""

    field: FieldSpec
    condition: Condition


RecordFilter: TypeAlias = grammar.Filter[Leaf]


@dataclass(frozen=True, slots=True)
class FieldLeaves:
    """Reads leaves that name fields; `timezone` serves leaves and fields that name none."""

    fields: FieldSpecs
    now: datetime
    timezone: str | None = None

    def read(self, raw: grammar.RawLeaf, path: str) -> RecordFilter:
        """The leaf at a path. Raises FilterError."""
        field = self._field(raw["field"], f"{path}.field")
        operator = _operator(raw.get("op"), field, f"{path}.op")
        here = self._zone(raw, field, f"{path}.timezone")
        operand = raw.get("value")
        try:
            return grammar.positive_leaf(operator, lambda op: self._leaf(op, field, operand, here))
        except InvalidValueError as problem:
            raise grammar.FilterError((f"{path}.value", str(problem))) from problem

    def _leaf(self, op: grammar.Op, field: FieldSpec, operand: object, here: ZoneInfo) -> Leaf:
        if isinstance(operand, list) and len(operand) > MAX_OPERANDS:
            raise InvalidValueError(f"must be a list of at most {MAX_OPERANDS} values")
        reader = operand_reader(field)
        return Leaf(field, read_condition(op, value_form(field), reader, operand, self.now, here))

    def _field(self, key: object, path: str) -> FieldSpec:
        field = self.fields.get(key) if isinstance(key, str) else None
        if field is None:
            raise grammar.FilterError((path, no_field(key, self.fields)))
        return field

    def _zone(self, raw: grammar.RawLeaf, field: FieldSpec, path: str) -> ZoneInfo:
        name = raw.get("timezone")
        if name is None:
            return zone(self.timezone or field.timezone)
        try:
            return zone(name)
        except (ValueError, TypeError) as error:
            raise grammar.FilterError((path, "must be an IANA time zone")) from error


def read_filter(
    raw: object, fields: FieldSpecs, now: datetime, timezone: str | None = None
) -> RecordFilter:
    """The filter a client described; `timezone` serves leaves and fields that name none.

    Raises `ValidationError` at the places that are wrong.
    """
    try:
        return grammar.read_tree(raw, FieldLeaves(fields, now, timezone).read)
    except grammar.FilterError as error:
        details = [Detail(path, message) for path, message in error.problems]
        raise ValidationError(str(error), details) from error


def _operator(name: object, field: FieldSpec, path: str) -> grammar.Op:
    usable = grammar.OPERATORS[value_form(field)]
    if isinstance(name, str) and name in usable:
        return grammar.Op(name)
    raise grammar.FilterError(
        (path, f"must be an operator of {an(field.kind)} field: {', '.join(usable)}")
    )


Reader = Callable[[Any], Any]


def operand_reader(field: FieldSpec) -> Reader:
    """Reads one value, or one element of a list, of a field's type.

    The reader raises `InvalidValueError`.
    """
    match value_form(field):
        case grammar.ValueForm.NUMBER:
            return _number
        case grammar.ValueForm.BOOLEAN:
            return lambda value: values.check_checkbox(field, value)
        case grammar.ValueForm.TIME:
            return lambda value: values.check_time(field, value)
        case grammar.ValueForm.OPTION | grammar.ValueForm.OPTIONS:
            return lambda value: _option(field, value)
        case grammar.ValueForm.USER | grammar.ValueForm.USERS:
            return values.user
        case grammar.ValueForm.FILES:
            return lambda value: _id(value, "file")
        case grammar.ValueForm.RECORDS:
            return lambda value: _id(value, "record")
        case grammar.ValueForm.VALUES:
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


def _id(value: object, resource: str) -> str:
    checked = parse_id(value) if isinstance(value, str) else None
    if checked is None:
        raise InvalidValueError(f"must be the id of {an(resource)}")
    return str(checked)


def _scalar(value: object) -> str | bool | int | float:
    """Anything that a looked-up list can hold: text, a number, true or false."""
    if isinstance(value, bool):
        return value
    return number(value) if isinstance(value, int | float) else text(value)


_PATTERNS = {
    grammar.ValueForm.DAY: re.compile(r"....-..-..", re.DOTALL),
    grammar.ValueForm.MOMENT: re.compile(r"....-..-..T..:..:..\....Z", re.DOTALL),
    grammar.ValueForm.TIME: re.compile(r"..:...*", re.DOTALL),
}
"""Text of a fixed width, whose order as text is that of what it stands for."""


def holds(tree: RecordFilter, values: Mapping[str, Any]) -> bool:
    """True when stored values by field key satisfy a filter; an absent value is empty."""
    return evaluation.holds(tree, lambda leaf: leaf_holds(leaf, values.get(leaf.field.key)))


def leaf_holds(leaf: Leaf, stored_value: object) -> bool:
    """True when a stored value meets a condition of its field; a value of another form is empty."""
    form = value_form(leaf.field)
    value = _typed(form, stored_value)
    if value is None and form is grammar.ValueForm.RECORDS:
        value = []
    elif value is None and form is grammar.ValueForm.BOOLEAN and isinstance(leaf.condition, In):
        value = False
    return evaluation.meets(_bound(form, leaf.condition), value)


def has_form(field: FieldSpec, stored_value: object) -> bool:
    """True when a stored value has the form of its field; an absent value has every form."""
    return stored_value is None or _typed(value_form(field), stored_value) is not None


def _typed(form: grammar.ValueForm, stored_value: object) -> object:
    """The value as conditions are compared with it; None where it has another form."""
    if form is grammar.ValueForm.OPAQUE:
        return stored_value
    if form is grammar.ValueForm.BOOLEAN:
        return stored_value if isinstance(stored_value, bool) else None
    if form is grammar.ValueForm.NUMBER:
        is_number = isinstance(stored_value, int | float) and not isinstance(stored_value, bool)
        return Decimal(repr(stored_value)) if is_number else None
    if form in grammar.LISTS:
        return stored_value if isinstance(stored_value, list) else None
    if not isinstance(stored_value, str):
        return None
    pattern = _PATTERNS.get(form)
    return stored_value if pattern is None or pattern.fullmatch(stored_value) else None


def _bound(form: grammar.ValueForm, condition: Condition) -> Condition:
    """The condition with its moments in the form in which records store them."""
    if form is not grammar.ValueForm.MOMENT:
        return condition
    match condition:
        case In(values):
            return In(
                tuple(stored_moment(value) for value in values if isinstance(value, datetime))
            )
        case Range(low, high):
            return replace(condition, low=_moment(low), high=_moment(high))
    return condition


def _moment(value: Scalar | None) -> Scalar | None:
    return stored_moment(value) if isinstance(value, datetime) else value

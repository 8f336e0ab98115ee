"""From a cell to the value of a field."""

import re
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from models.core.values import InvalidValueError, stored_moment
from models.data.fields.rules.fields import FieldSpec, FieldValue
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.rules.registry import KIND_RULES
from models.data.fields.rules.value_conversion import LOST, TEXT_KINDS, Lost, convert_value
from models.data.records.rules.write.options import GrowingField
from models.sources.tabular.rules.cells import Amount, Cell, Percent, Typed, shown_cell
from models.sources.tabular.rules.formats import Conventions

Convert: TypeAlias = Callable[[Cell], FieldValue | Lost]
"""Gives the stored form of a cell, None for an empty one, LOST for one that has none."""

_REMEMBERED = 10_000
_SEPARATORS = re.compile(r"[,;\n]")
_LINES = frozenset({FieldKind.EMAIL, FieldKind.URL, FieldKind.PHONE})
_BY_DAY = frozenset({FieldKind.DATE, FieldKind.DATETIME})
_BY_NUMBER = frozenset(
    {
        FieldKind.NUMBER,
        FieldKind.CURRENCY,
        FieldKind.PERCENT,
        FieldKind.RATING,
        FieldKind.DURATION,
    }
)


def _of(kind: FieldKind) -> FieldSpec:
    return FieldSpec(id=UUID(int=0), key="cell", label="", kind=kind)


_TEXT, _NUMBER, _CHECKBOX = _of(FieldKind.TEXT), _of(FieldKind.NUMBER), _of(FieldKind.CHECKBOX)
_DATE, _DATETIME, _TIME = _of(FieldKind.DATE), _of(FieldKind.DATETIME), _of(FieldKind.TIME)
_DURATION, _JSON = _of(FieldKind.DURATION), _of(FieldKind.JSON)


def converter(spec: FieldSpec, conventions: Conventions) -> Convert:
    """The conversion of cells to values of a field; equal cells are converted once."""
    if spec.kind in TEXT_KINDS or spec.kind in _LINES:
        return _text(spec)
    cache: dict[Hashable, FieldValue | Lost] = {}

    def convert(value: Cell) -> FieldValue | Lost:
        if value is None:
            return None
        if isinstance(value, str):
            cell: Hashable = value
        elif isinstance(value, list | dict):
            return _from_json(spec, value)
        else:
            # 1, 1.0 and true are equal, and not the same cell.
            cell = (type(value), value)
        if cell in cache:
            return cache[cell]
        if isinstance(value, str):
            found = _from_text(spec, value, conventions)
        else:
            found = _typed(spec, value)
        if len(cache) < _REMEMBERED:
            cache[cell] = found
        return found

    return convert


def _text(spec: FieldSpec) -> Convert:
    """The conversion of cells to text; to check one costs less than to remember it."""
    check = KIND_RULES[spec.kind].check
    assert check is not None, "clients write text"
    is_line = spec.kind in _LINES

    def convert(value: Cell) -> FieldValue | Lost:
        if value is None:
            return None
        if not isinstance(value, str):
            return _typed(spec, value)
        try:
            return check(spec, value.strip() if is_line else value)
        except InvalidValueError:
            return LOST

    return convert


def growing(field: GrowingField) -> Convert:
    """The conversion of cells to options, which come into being where a name is new."""

    def convert(value: Cell) -> FieldValue | Lost:
        if value is None:
            return None
        names = [shown_cell(value)] if not isinstance(value, list) else value
        if field.spec.kind is FieldKind.MULTI_SELECT:
            names = [part.strip() for name in names for part in _SEPARATORS.split(str(name))]
        keys = [field.key_of(str(name)) for name in names if name != ""]
        if any(key not in field.spec.option_keys for key in keys) or not keys:
            return LOST
        return list(dict.fromkeys(keys)) if field.spec.kind is FieldKind.MULTI_SELECT else keys[0]

    return convert


def _from_text(spec: FieldSpec, text: str, conventions: Conventions) -> FieldValue | Lost:
    plain = text.strip()
    try:
        if spec.kind in _BY_DAY:
            plain = conventions.day(plain)
        elif spec.kind in _BY_NUMBER:
            plain = conventions.number(plain)
        elif spec.kind is FieldKind.CHECKBOX:
            plain = conventions.truth(plain)
    except InvalidValueError:
        return LOST
    if spec.kind in {FieldKind.PERSON, FieldKind.FILE}:
        return _checked(spec, [part.strip() for part in plain.split(",")])
    return convert_value(_TEXT, spec, plain)


def _typed(spec: FieldSpec, value: Typed) -> FieldValue | Lost:
    """The value of a cell that its file has typed."""
    return _BY_TYPE.get(type(value), _from_json)(spec, value)


def _from_day(spec: FieldSpec, value: date) -> FieldValue | Lost:
    written = value.isoformat()
    return written if spec.kind is FieldKind.DATE else convert_value(_DATE, spec, written)


def _from_time(spec: FieldSpec, value: time) -> FieldValue | Lost:
    return convert_value(_TIME, spec, value.isoformat("seconds"))


def _from_duration(spec: FieldSpec, value: timedelta) -> FieldValue | Lost:
    return convert_value(_DURATION, spec, round(value / timedelta(milliseconds=1)))


def _from_truth(spec: FieldSpec, value: bool) -> FieldValue | Lost:
    return convert_value(_CHECKBOX, spec, value)


def _from_number(spec: FieldSpec, value: float) -> FieldValue | Lost:
    return convert_value(_NUMBER, spec, value)


def _from_percent(spec: FieldSpec, value: Percent) -> FieldValue | Lost:
    if spec.kind is not FieldKind.PERCENT:
        return _from_number(spec, value)
    # A field holds 50 for 50 %; a hundredfold float need not be the nearest one.
    return convert_value(_NUMBER, spec, float(Decimal(repr(float(value))) * 100))


def _from_moment(spec: FieldSpec, value: datetime) -> FieldValue | Lost:
    """A moment of a workbook has no offset: it is meant in the time zone of the field."""
    if value.tzinfo is not None:
        return convert_value(_DATETIME, spec, stored_moment(value))
    if spec.kind in _BY_DAY:
        written = value.isoformat(" ", "seconds")
        return convert_value(_TEXT, spec, written[:10] if spec.kind is FieldKind.DATE else written)
    return convert_value(_DATETIME, spec, stored_moment(value.replace(tzinfo=UTC)))


def _from_json(spec: FieldSpec, value: FieldValue) -> FieldValue | Lost:
    checked = _checked(spec, value)
    if checked is not LOST:
        return checked
    if spec.kind is FieldKind.MULTI_SELECT and isinstance(value, list):
        return convert_value(_TEXT, spec, "\n".join(map(str, value)))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return convert_value(_TEXT, spec, ", ".join(value))
    return convert_value(_JSON, spec, value)


def _checked(spec: FieldSpec, value: object) -> FieldValue | Lost:
    check = KIND_RULES[spec.kind].check
    assert check is not None, "a column fills only fields that clients write"
    try:
        return check(spec, value)
    except InvalidValueError:
        return LOST


_BY_TYPE: Mapping[type, Callable[[FieldSpec, Any], FieldValue | Lost]] = {
    bool: _from_truth,
    int: _from_number,
    float: _from_number,
    Percent: _from_percent,
    Amount: _from_number,
    date: _from_day,
    datetime: _from_moment,
    time: _from_time,
    timedelta: _from_duration,
}

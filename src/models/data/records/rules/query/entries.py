"""The side index: what its entries hold of values, and which entries meet a condition.

An entry is written, built and looked up by the expressions here alone. Text is kept as far as its
first characters, so a lookup may find too much and never too little: what an entry does not answer
exactly is asked of the record.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ARRAY,
    DateTime,
    Integer,
    Numeric,
    Text,
    and_,
    any_,
    cast,
    func,
    literal,
    null,
)

from models.core.filters.conditions import Anchor, Condition, Empty, In, Range, Substring
from models.core.filters.forms import ValueForm
from models.core.values import stored_moment
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.registry import value_form
from models.data.records.rules.query.extraction import Expression, extract, fold
from models.data.records.tables import record_index

ENTRY_TEXT = 100
"""Characters of a text that its entry holds: a btree refuses long keys."""

_NUMBERS = frozenset({ValueForm.NUMBER, ValueForm.BOOLEAN})
_TEXTS = frozenset(
    {
        ValueForm.TEXT,
        ValueForm.DAY,
        ValueForm.MOMENT,
        ValueForm.TIME,
        ValueForm.OPTION,
        ValueForm.USER,
    }
)
_UNORDERED = frozenset({ValueForm.OPTION, ValueForm.USER})
"""Forms whose entries find values but do not stand in the order people see."""

_MICROSECONDS = 'YYYY-MM-DD"T"HH24:MI:SS.US'
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Entry:
    """The values of a field's entries, read from the record table; NULL where it is empty."""

    number: Expression
    text: Expression
    folded: Expression


def is_indexable(field: FieldSpec) -> bool:
    """True when a record has one value of this field that a btree can order."""
    return value_form(field) in _NUMBERS | _TEXTS


def entry_of(field: FieldSpec) -> Entry:
    """The content of a record's entry."""
    form = value_form(field)
    no_text = cast(null(), Text)
    if form in _NUMBERS:
        value = extract(field).expression
        whole = cast(value, Integer) if form is ValueForm.BOOLEAN else value
        return Entry(cast(whole, Numeric), no_text, no_text)
    text = _text(field)
    return Entry(cast(null(), Numeric), text, fold(text) if form is ValueForm.TEXT else no_text)


def _text(field: FieldSpec) -> Expression:
    value = extract(field)
    if isinstance(value.sql_type, DateTime):
        return func.to_char(func.timezone("UTC", value.expression), _MICROSECONDS)
    # Text without characters is empty, as it is in an order.
    return func.nullif(func.left(cast(value.expression, Text), ENTRY_TEXT), "")


def order_column(field: FieldSpec) -> Expression | None:
    """The column whose order is that of the field's values; None where entries have no order."""
    form = value_form(field)
    if form in _UNORDERED or not is_indexable(field):
        return None
    return _column(field)


def is_mirrored(field: FieldSpec) -> bool:
    """True when the ordered column holds the very value that records are ordered by."""
    form = value_form(field)
    exact = {ValueForm.NUMBER, ValueForm.TEXT, ValueForm.DAY, ValueForm.MOMENT}
    return form in exact and not (field.system and form is ValueForm.MOMENT)


def order_key(field: FieldSpec, value: object) -> Expression:
    """A value as it stands in the ordered column."""
    return literal(_key(field, value), _column(field).type)


def _column(field: FieldSpec) -> Expression:
    return record_index.c.number if value_form(field) in _NUMBERS else record_index.c.text


def _key(field: FieldSpec, value: Any) -> Decimal | str:
    if value_form(field) in _NUMBERS:
        return Decimal(value)
    if isinstance(value, datetime):
        utc = value.astimezone(UTC)
        return utc.strftime("%Y-%m-%dT%H:%M:%S.%f") if field.system else stored_moment(utc)
    text: str = value[:ENTRY_TEXT]
    return text


def entries_of(field: FieldSpec) -> Expression:
    """The condition of a field's entries."""
    return record_index.c.index_id == field.index_id


def blank_entries() -> Expression:
    """The condition of entries whose field is empty."""
    return and_(record_index.c.number.is_(None), record_index.c.text.is_(None))


def entry_condition(field: FieldSpec, condition: Condition) -> Expression | None:
    """The condition on the entry of a record that follows from `condition`; None without one."""
    match condition:
        case Empty() if value_form(field) is not ValueForm.BOOLEAN:
            return blank_entries()
        case In(values) if "" not in values:
            keys = [_key(field, value) for value in values]
            column = _column(field)
            return column == any_(literal(keys, ARRAY(column.type)))
        case Range():
            return _range(field, condition)
        case Substring(text, Anchor.START) if text:
            return _prefix(text)
        case _:
            return None


def is_exact(condition: Condition) -> bool:
    """True when the entries of its condition belong to the records that pass, and to no others."""
    match condition:
        case In(values):
            return all(_is_whole(value) for value in values)
        case Range(low, high):
            return _is_whole(low) and _is_whole(high)
        case Substring(text):
            return len(text) <= ENTRY_TEXT
        case _:
            return False


def _range(field: FieldSpec, span: Range) -> Expression | None:
    if value_form(field) is ValueForm.TEXT and (span.low in (None, "") or span.high == ""):
        # An empty text may lie in the range, and has no value here.
        return None
    column = _column(field)
    bounds = []
    if span.low is not None:
        low = order_key(field, span.low)
        exact = not span.with_low and _is_whole(span.low)
        bounds.append(column > low if exact else column >= low)
    if span.high is not None:
        high = order_key(field, span.high)
        exact = not span.with_high and _is_whole(span.high)
        bounds.append(column < high if exact else column <= high)
    return and_(*bounds)


def _is_whole(value: object) -> bool:
    """True when a bound is compared as it is, and not by its first characters."""
    return not isinstance(value, str) or len(value) < ENTRY_TEXT


def _prefix(text: str) -> Expression:
    first = fold(literal(text[:ENTRY_TEXT], Text)).collate("C")
    column = record_index.c.folded
    return and_(column >= first, column < first.concat(_LAST_CHARACTER))

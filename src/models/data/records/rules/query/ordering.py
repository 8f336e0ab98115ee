"""The order of a list with its keyset, and the entries of the side index that serve it.

An entry of the index is written, built and looked up by the expressions here alone. Text is kept as
far as its first characters, so a lookup may find too much and never too little: what an entry does
not answer exactly is asked of the record.

Keyset paging compares the sort values and the id of the last record shown column by column, with
empty values in their place. Every order ends with the id, in the direction of the last sort, so it
is total, and an index that is read forwards or backwards serves it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from models.core.filters.grammar import ValueForm
from models.core.filters.operands import Anchor, Condition, Empty, In, Range, Substring
from models.core.problems import an
from models.core.values import spellings, stored_moment
from models.data.fields.rules.fields import FieldSpec, FieldSpecs, no_field
from models.data.fields.rules.values import value_form
from models.data.records.rules.query.sql import Expression, extract, fold
from models.data.records.shapes import Sort
from models.data.records.tables import Record, record, record_index
from runtime.errors import ValidationError

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
    no_text = sa.cast(sa.null(), sa.Text)
    if form in _NUMBERS:
        value = extract(field).expression
        whole = sa.cast(value, sa.Integer) if form is ValueForm.BOOLEAN else value
        return Entry(sa.cast(whole, sa.Numeric), no_text, no_text)
    text = _text(field)
    return Entry(
        sa.cast(sa.null(), sa.Numeric), text, fold(text) if form is ValueForm.TEXT else no_text
    )


def _text(field: FieldSpec) -> Expression:
    value = extract(field)
    if isinstance(value.sql_type, sa.DateTime):
        return sa.func.to_char(sa.func.timezone("UTC", value.expression), _MICROSECONDS)
    # Text without characters is empty, as it is in an order.
    return sa.func.nullif(sa.func.left(sa.cast(value.expression, sa.Text), ENTRY_TEXT), "")


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
    return sa.literal(_key(field, value), _column(field).type)


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
    return sa.and_(record_index.c.number.is_(None), record_index.c.text.is_(None))


def entry_condition(field: FieldSpec, condition: Condition) -> Expression | None:
    """The condition on the entry of a record that follows from `condition`; None without one."""
    match condition:
        case Empty() if value_form(field) is not ValueForm.BOOLEAN:
            return blank_entries()
        case In(values) if "" not in values:
            keys = [_key(field, value) for value in values]
            column = _column(field)
            return column == sa.any_(sa.literal(keys, sa.ARRAY(column.type)))
        case Range():
            return _range(field, condition)
        case Substring(text, Anchor.START) if text:
            return sa.or_(*map(_prefix, spellings(text)))
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
            return all(len(one) <= ENTRY_TEXT for one in spellings(text))
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
    return sa.and_(*bounds)


def _is_whole(value: object) -> bool:
    """True when a bound is compared as it is, and not by its first characters."""
    return not isinstance(value, str) or len(value) < ENTRY_TEXT


def _prefix(text: str) -> Expression:
    first = fold(sa.literal(text[:ENTRY_TEXT], sa.Text)).collate("C")
    column = record_index.c.folded
    return sa.and_(column >= first, column < first.concat(_LAST_CHARACTER))


_SORTABLE = frozenset(
    {
        ValueForm.TEXT,
        ValueForm.NUMBER,
        ValueForm.BOOLEAN,
        ValueForm.DAY,
        ValueForm.MOMENT,
        ValueForm.TIME,
        ValueForm.OPTION,
    }
)

SORTED_TEXT = 2 * ENTRY_TEXT
"""Characters of text that take part in an order, shared by its text columns.

At most half of them are in one column. A cursor carries them, and a cursor is bounded.
"""


@dataclass(frozen=True)
class Column:
    """One key of an order; text is compared by its first `length` characters."""

    field: FieldSpec
    descending: bool
    nulls_first: bool
    length: int

    @cached_property
    def _ordered(self) -> tuple[Expression, TypeEngine[Any]]:
        # Not before it is called for: along an index it never is.
        return ordered_value(self.field, self.length)

    @property
    def expression(self) -> Expression:
        return self._ordered[0]

    @property
    def whole(self) -> bool:
        """True when it compares no less of a text than an entry of the side index holds."""
        return value_form(self.field) is not ValueForm.TEXT or self.length == ENTRY_TEXT

    def read(self, value: Any) -> object:
        """A value from a cursor, made comparable again."""
        return Decimal(value) if value_form(self.field) is ValueForm.NUMBER else value

    @property
    def clause(self) -> Expression:
        return self.directed(self.expression)

    def directed(self, value: Expression) -> Expression:
        """The order by a value in the direction of this key."""
        ordered = value.desc() if self.descending else value.asc()
        return sa.nulls_first(ordered) if self.nulls_first else sa.nulls_last(ordered)

    def same(self, value: object) -> Expression:
        if value is None:
            return self.expression.is_(None)
        return self.expression == self._bound(value)

    def after(self, value: object) -> Expression:
        if value is None:
            return self.expression.is_not(None) if self.nulls_first else sa.false()
        bound = self._bound(value)
        beyond = self.expression < bound if self.descending else self.expression > bound
        return beyond if self.nulls_first else sa.or_(beyond, self.expression.is_(None))

    def _bound(self, value: object) -> Expression:
        return sa.literal(self.read(value), self._ordered[1])


@dataclass(frozen=True, slots=True)
class Order:
    """Sort columns, before the id; none means newest first."""

    columns: tuple[Column, ...]

    @property
    def clauses(self) -> list[Expression]:
        if not self.columns:
            return [record.c.created_at.desc(), record.c.id.desc()]
        return [*(column.clause for column in self.columns), self.id_clause]

    @property
    def id_clause(self) -> Expression:
        return record.c.id.desc() if self.descending else record.c.id.asc()

    @property
    def descending(self) -> bool:
        """True when records that are alike follow newest first."""
        return not self.columns or self.columns[-1].descending

    def selected(self, *known: Expression) -> list[Expression]:
        """The sort values, which a query selects beside the record for its cursor.

        `known` are columns that hold the first of them.
        """
        others = (column.expression for column in self.columns[len(known) :])
        return [
            expression.label(f"sort_{place}") for place, expression in enumerate([*known, *others])
        ]

    def position(self, row: Record) -> tuple[Any, ...]:
        """The values that a cursor remembers of a row."""
        if not self.columns:
            return (row.created_at, row.id)
        values = (getattr(row, f"sort_{place}") for place in range(len(self.columns)))
        return (*(str(v) if isinstance(v, Decimal) else v for v in values), row.id)

    def after(self, position: Sequence[Any]) -> Expression:
        """The condition of every record that follows the one at this position."""
        *values, last_id = position
        if not self.columns:
            return sa.tuple_(record.c.created_at, record.c.id) < sa.tuple_(
                _bound(values[0], record.c.created_at), _bound(last_id, record.c.id)
            )
        alike: list[Expression] = []
        steps: list[Expression] = []
        for column, value in zip(self.columns, values, strict=True):
            steps.append(sa.and_(*alike, column.after(value)))
            alike.append(column.same(value))
        last = sa.literal(last_id, record.c.id.type)
        steps.append(sa.and_(*alike, record.c.id < last if self.descending else record.c.id > last))
        return sa.or_(*steps)


def _bound(value: object, column: Expression) -> Expression:
    return value if isinstance(value, sa.ColumnElement) else sa.literal(value, column.type)


def ordered_value(field: FieldSpec, length: int) -> tuple[Expression, TypeEngine[Any]]:
    """The value records are ordered and grouped by; text by its first `length` characters."""
    extracted = extract(field)
    match value_form(field):
        case ValueForm.TEXT:
            # Text without characters is empty, so it stands where empty values stand.
            first = sa.func.nullif(sa.func.left(extracted.expression, length), "")
            return first.collate("C"), extracted.sql_type
        case ValueForm.OPTION:
            keys = sa.literal(list(field.option_keys), sa.ARRAY(sa.Text))
            return sa.func.array_position(keys, extracted.expression), sa.Integer()
        case ValueForm.BOOLEAN:
            return sa.cast(extracted.expression, sa.Integer), sa.Integer()
        case _:
            return extracted.expression, extracted.sql_type


NEWEST_FIRST = Order(())


def read_order(sorts: Sequence[Sort], fields: FieldSpecs) -> Order:
    """The order a client asked for. Raises `ValidationError` for a field that has none."""
    sort_fields = [_sortable(sort, place, fields) for place, sort in enumerate(sorts)]
    texts = sum(value_form(field) is ValueForm.TEXT for field in sort_fields)
    length = min(ENTRY_TEXT, SORTED_TEXT // max(1, texts))
    return Order(
        tuple(
            Column(field, sort.direction == "desc", sort.nulls == "first", length)
            for sort, field in zip(sorts, sort_fields, strict=True)
        )
    )


def can_be_sorted(field: FieldSpec) -> bool:
    """True for a field whose values have an order."""
    return value_form(field) in _SORTABLE


def _sortable(sort: Sort, place: int, fields: FieldSpecs) -> FieldSpec:
    field = fields.get(sort.field)
    path = f"sorts.{place}.field"
    if field is None:
        raise ValidationError.at(path, no_field(sort.field, fields))
    if not can_be_sorted(field):
        raise ValidationError.at(path, f"cannot be sorted by: it is {an(field.kind)} field")
    return field

"""The order of a list of records and the condition that continues it after a given record.

Keyset paging: the sort values and the id of the last record shown, compared column by column,
with empty values in their place. Every order ends with the id, in the direction of the last sort,
so it is total, and an index that is read forwards or backwards serves it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    Text,
    and_,
    cast,
    false,
    func,
    literal,
    nulls_first,
    nulls_last,
    or_,
    tuple_,
)
from sqlalchemy.types import TypeEngine

from models.core.filters.forms import ValueForm
from models.core.problems import an
from models.data.fields.rules.field_keys import no_field
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.registry import value_form
from models.data.records.rules.query.entries import ENTRY_TEXT
from models.data.records.rules.query.extraction import Expression, extract
from models.data.records.shapes import Sort
from models.data.records.tables import Record, record
from runtime.errors import ValidationError

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
        # Not before it is asked for: along an index nobody asks.
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
        directed = self.expression.desc() if self.descending else self.expression.asc()
        return nulls_first(directed) if self.nulls_first else nulls_last(directed)

    def same(self, value: object) -> Expression:
        if value is None:
            return self.expression.is_(None)
        return self.expression == self._bound(value)

    def after(self, value: object) -> Expression:
        if value is None:
            return self.expression.is_not(None) if self.nulls_first else false()
        bound = self._bound(value)
        beyond = self.expression < bound if self.descending else self.expression > bound
        return beyond if self.nulls_first else or_(beyond, self.expression.is_(None))

    def _bound(self, value: object) -> Expression:
        return literal(self.read(value), self._ordered[1])


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
            return tuple_(record.c.created_at, record.c.id) < tuple_(
                _bound(values[0], record.c.created_at), _bound(last_id, record.c.id)
            )
        alike: list[Expression] = []
        steps: list[Expression] = []
        for column, value in zip(self.columns, values, strict=True):
            steps.append(and_(*alike, column.after(value)))
            alike.append(column.same(value))
        last = literal(last_id, record.c.id.type)
        steps.append(and_(*alike, record.c.id < last if self.descending else record.c.id > last))
        return or_(*steps)


NEWEST_FIRST = Order(())


def _bound(value: object, column: Expression) -> Expression:
    return value if isinstance(value, ColumnElement) else literal(value, column.type)


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


def _sortable(sort: Sort, place: int, fields: FieldSpecs) -> FieldSpec:
    field = fields.get(sort.field)
    path = f"sorts.{place}.field"
    if field is None:
        raise ValidationError.at(path, no_field(sort.field, fields))
    if value_form(field) not in _SORTABLE:
        raise ValidationError.at(path, f"cannot be sorted by: it is {an(field.kind)} field")
    return field


def ordered_value(field: FieldSpec, length: int) -> tuple[Expression, TypeEngine[Any]]:
    """The value records are ordered and grouped by; text by its first `length` characters."""
    extracted = extract(field)
    match value_form(field):
        case ValueForm.TEXT:
            # Text without characters is empty, so it stands where empty values stand.
            first = func.nullif(func.left(extracted.expression, length), "")
            return first.collate("C"), extracted.sql_type
        case ValueForm.OPTION:
            keys = literal(list(field.option_keys), ARRAY(Text))
            return func.array_position(keys, extracted.expression), Integer()
        case ValueForm.BOOLEAN:
            return cast(extracted.expression, Integer), Integer()
        case _:
            return extracted.expression, extracted.sql_type

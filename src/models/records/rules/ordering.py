"""The order of a list of records and the condition that continues it after a given record.

Keyset paging: the sort values and the id of the last record shown, compared column by column,
with empty values in their place. Every order ends with the id, so it is total.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
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

from models.databases.rules.fields import FieldSpec, FieldSpecs
from models.databases.rules.registry import KIND_RULES, Comparison
from models.records.rules.extraction import Expression, extract
from models.records.rules.operators import SORTABLE
from models.records.shapes import Sort
from models.records.tables import record
from runtime.errors import ValidationError

SORTED_TEXT = 200
"""Characters of text that take part in an order, shared by its text columns: a cursor carries
them, and a cursor is bounded."""


@dataclass(frozen=True, slots=True)
class Column:
    """One key of an order; `read` makes a value from a cursor comparable again."""

    expression: Expression
    sql_type: TypeEngine[Any]
    descending: bool
    nulls_first: bool
    read: Callable[[Any], Any] = lambda value: value

    @property
    def clause(self) -> Expression:
        directed = self.expression.desc() if self.descending else self.expression.asc()
        return nulls_first(directed) if self.nulls_first else nulls_last(directed)

    def same(self, value: Any) -> Expression:
        if value is None:
            return self.expression.is_(None)
        return self.expression == self._bound(value)

    def after(self, value: Any) -> Expression:
        if value is None:
            return self.expression.is_not(None) if self.nulls_first else false()
        bound = self._bound(value)
        beyond = self.expression < bound if self.descending else self.expression > bound
        return beyond if self.nulls_first else or_(beyond, self.expression.is_(None))

    def _bound(self, value: Any) -> Expression:
        return literal(self.read(value), self.sql_type)


@dataclass(frozen=True, slots=True)
class Order:
    """Sort columns, before the id; none means newest first."""

    columns: tuple[Column, ...]

    @property
    def clauses(self) -> list[Expression]:
        if not self.columns:
            return [record.c.created_at.desc(), record.c.id.desc()]
        return [*(column.clause for column in self.columns), record.c.id.desc()]

    @property
    def selected(self) -> list[Expression]:
        """The sort values, which a query selects beside the record for its cursor."""
        return [
            column.expression.label(f"sort_{place}") for place, column in enumerate(self.columns)
        ]

    def position(self, row: Any) -> tuple[Any, ...]:
        """What a cursor remembers of a row."""
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
        steps.append(and_(*alike, record.c.id < literal(last_id, record.c.id.type)))
        return or_(*steps)


NEWEST_FIRST = Order(())


def _bound(value: Any, column: Expression) -> Expression:
    return value if isinstance(value, ColumnElement) else literal(value, column.type)


def read_order(sorts: Sequence[Sort], fields: FieldSpecs) -> Order:
    """The order a client asked for. Raises `ValidationError` for a field that has none."""
    chosen = [_sortable(sort, place, fields) for place, sort in enumerate(sorts)]
    texts = sum(KIND_RULES[field.kind].comparison is Comparison.TEXT for field in chosen)
    length = SORTED_TEXT // max(1, texts)
    return Order(
        tuple(_column(sort, field, length) for sort, field in zip(sorts, chosen, strict=True))
    )


def _sortable(sort: Sort, place: int, fields: FieldSpecs) -> FieldSpec:
    field = fields.get(sort.field)
    path = f"sorts.{place}.field"
    if field is None:
        raise ValidationError.at(path, "is not the key of a field of this database")
    if field.kind not in KIND_RULES or KIND_RULES[field.kind].comparison not in SORTABLE:
        raise ValidationError.at(path, f"cannot be sorted by: it is a {field.kind} field")
    return field


def _column(sort: Sort, field: FieldSpec, length: int) -> Column:
    extracted = extract(field)
    expression, sql_type = extracted.expression, extracted.sql_type
    read: Callable[[Any], Any] = _same
    match KIND_RULES[field.kind].comparison:
        case Comparison.TEXT:
            # Text without characters is empty, so it stands where empty values stand.
            expression = func.nullif(func.left(expression, length), "").collate("C")
        case Comparison.OPTION:
            keys = literal(list(field.option_keys), ARRAY(Text))
            expression, sql_type = func.array_position(keys, expression), Integer()
        case Comparison.BOOLEAN:
            expression, sql_type = cast(expression, Integer), Integer()
        case Comparison.NUMBER:
            read = Decimal
    return Column(expression, sql_type, sort.direction == "desc", sort.nulls == "first", read)


def _same(value: Any) -> Any:
    return value

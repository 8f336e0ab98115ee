"""Figures over the records a query finds: which a field takes, and how each is computed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Float, cast, distinct, false, func, not_, null

from models.core.filters.forms import LISTS, ValueForm
from models.core.problems import an
from models.data.fields.rules.aggregates import Aggregate, usable_aggregates
from models.data.fields.rules.field_keys import no_field
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.registry import value_form
from models.data.records.rules.query.entries import ENTRY_TEXT
from models.data.records.rules.query.extraction import Expression, extract
from models.data.records.rules.query.predicates import empty
from models.data.records.shapes import Aggregation
from runtime.errors import ValidationError
from runtime.timestamps import wire_timestamp

_LONGEST_WHOLE = 10**21
"""From here on a whole number is written with an exponent, as JavaScript does, if a double has its
digits."""

_OPAQUE = LISTS | {ValueForm.OPAQUE}
"""Forms whose values are counted, but not told apart."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One aggregate under its name in the answer; a count may be of no field."""

    name: str
    op: Aggregate
    field: FieldSpec | None

    @property
    def inputs(self) -> tuple[Expression, Expression]:
        """The expressions it needs of each record: the value, and a test that it is empty."""
        if self.field is None:
            return null(), false()
        return _value(self.field, self.op), empty(self.field)

    def of(self, value: Expression, blank: Expression) -> Expression:
        """The figure over these columns of all records."""
        return _FIGURES[self.op](value, blank)


def read_aggregates(aggregates: Sequence[Aggregation], fields: FieldSpecs) -> tuple[Figure, ...]:
    """The figures a client asked for. Raises `ValidationError` at `aggregates.<place>`."""
    figures: dict[str, Figure] = {}
    for place, aggregate in enumerate(aggregates):
        figure = _figure(aggregate, fields, f"aggregates.{place}")
        if figure.name in figures:
            raise ValidationError.at(
                f"aggregates.{place}.as", f"{figure.name} is the name of an earlier aggregate"
            )
        figures[figure.name] = figure
    return tuple(figures.values())


def _figure(aggregate: Aggregation, fields: FieldSpecs, path: str) -> Figure:
    if aggregate.field is None:
        if aggregate.op is not Aggregate.COUNT:
            raise ValidationError.at(f"{path}.field", "is required: only count needs no field")
        return Figure(aggregate.name or "count", aggregate.op, None)
    field = fields.get(aggregate.field)
    if field is None:
        raise ValidationError.at(f"{path}.field", no_field(aggregate.field, fields))
    usable = _usable(field)
    if aggregate.op not in usable:
        raise ValidationError.at(
            f"{path}.op",
            f"must be an aggregate of {an(field.kind)} field: {', '.join(usable)}",
        )
    return Figure(aggregate.name or f"{aggregate.op}_{field.key}", aggregate.op, field)


def _usable(field: FieldSpec) -> list[Aggregate]:
    form = value_form(field)
    return [
        aggregate
        for aggregate in usable_aggregates(form)
        if aggregate is not Aggregate.COUNT_UNIQUE or form not in _OPAQUE
    ]


def _value(field: FieldSpec, op: Aggregate) -> Expression:
    form = value_form(field)
    if form in _OPAQUE:
        return null()
    value = extract(field).expression
    if form is not ValueForm.TEXT:
        return value
    shown = value if op is Aggregate.COUNT_UNIQUE else func.left(value, ENTRY_TEXT)
    return func.nullif(shown, "").collate("C")


def _share(part: Expression) -> Expression:
    """Percent of the records; NULL where there are none."""
    return 100 * cast(func.count().filter(part), Float) / func.nullif(func.count(), 0)


def _median(value: Expression) -> Expression:
    """The mean of the two values in the middle, in decimals: percentile_cont is of doubles."""
    middle = func.percentile_disc(0.5)
    return (middle.within_group(value) + middle.within_group(value.desc())) / 2


_FIGURES: dict[Aggregate, Callable[[Expression, Expression], Expression]] = {
    Aggregate.COUNT: lambda _value, _blank: func.count(),
    Aggregate.COUNT_EMPTY: lambda _value, blank: func.count().filter(blank),
    Aggregate.COUNT_FILLED: lambda _value, blank: func.count().filter(not_(blank)),
    Aggregate.COUNT_UNIQUE: lambda value, _blank: func.count(distinct(value)),
    Aggregate.PERCENT_EMPTY: lambda _value, blank: _share(blank),
    Aggregate.PERCENT_FILLED: lambda _value, blank: _share(not_(blank)),
    Aggregate.SUM: lambda value, _blank: func.sum(value),
    Aggregate.AVG: lambda value, _blank: func.avg(value),
    Aggregate.MIN: lambda value, _blank: func.min(value),
    Aggregate.MAX: lambda value, _blank: func.max(value),
    Aggregate.MEDIAN: lambda value, _blank: _median(value),
    Aggregate.RANGE: lambda value, _blank: func.max(value) - func.min(value),
    Aggregate.STDDEV: lambda value, _blank: func.stddev_samp(value),
    Aggregate.EARLIEST: lambda value, _blank: func.min(value),
    Aggregate.LATEST: lambda value, _blank: func.max(value),
    Aggregate.CHECKED: lambda value, _blank: func.count().filter(value),
    Aggregate.UNCHECKED: lambda value, _blank: func.count().filter(not_(value)),
}


def shown_value(value: object) -> object:
    """A value from the database as JSON has it."""
    if isinstance(value, Decimal):
        nearest = float(value)
        is_whole = value == value.to_integral_value()
        is_short = abs(value) >= _LONGEST_WHOLE and Decimal(repr(nearest)) == value
        return int(value) if is_whole and not is_short else nearest
    return wire_timestamp(value) if isinstance(value, datetime) else value

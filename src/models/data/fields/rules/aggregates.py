"""Aggregates (decisions C5): which forms of values each one takes, and the kind of its result."""

from enum import StrEnum

from models.core.filters.forms import ValueForm
from models.data.fields.rules.registry import ResultKind


class Aggregate(StrEnum):
    COUNT = "count"
    COUNT_EMPTY = "count_empty"
    COUNT_FILLED = "count_filled"
    COUNT_UNIQUE = "count_unique"
    PERCENT_EMPTY = "percent_empty"
    PERCENT_FILLED = "percent_filled"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"
    RANGE = "range"
    STDDEV = "stddev"
    EARLIEST = "earliest"
    LATEST = "latest"
    CHECKED = "checked"
    UNCHECKED = "unchecked"


OF_ANYTHING = frozenset(
    {
        Aggregate.COUNT,
        Aggregate.COUNT_EMPTY,
        Aggregate.COUNT_FILLED,
        Aggregate.COUNT_UNIQUE,
        Aggregate.PERCENT_EMPTY,
        Aggregate.PERCENT_FILLED,
    }
)
_OF_NUMBERS = frozenset(
    {
        Aggregate.SUM,
        Aggregate.AVG,
        Aggregate.MEDIAN,
        Aggregate.RANGE,
        Aggregate.STDDEV,
    }
)
_OF_TIMES = frozenset({Aggregate.EARLIEST, Aggregate.LATEST})
_OF_CHECKBOXES = frozenset({Aggregate.CHECKED, Aggregate.UNCHECKED})

_SCALARS = {
    ValueForm.NUMBER: ResultKind.NUMBER,
    ValueForm.TEXT: ResultKind.TEXT,
    ValueForm.TIME: ResultKind.TEXT,
    ValueForm.DAY: ResultKind.DATE,
    ValueForm.MOMENT: ResultKind.DATETIME,
}
"""Forms with an order of their own; the smallest and the largest value have the same form."""


def aggregate_result(aggregate: Aggregate, form: ValueForm) -> ResultKind | None:
    """The kind of an aggregate over values of this form; None when it does not take them."""
    if aggregate in OF_ANYTHING:
        return ResultKind.NUMBER
    if aggregate in _OF_NUMBERS:
        return ResultKind.NUMBER if form is ValueForm.NUMBER else None
    if aggregate in _OF_CHECKBOXES:
        return ResultKind.NUMBER if form is ValueForm.BOOLEAN else None
    if aggregate in _OF_TIMES and form not in {ValueForm.DAY, ValueForm.MOMENT}:
        return None
    return _SCALARS.get(form)


def usable_aggregates(form: ValueForm) -> list[Aggregate]:
    """The aggregates that values of this form take."""
    return [aggregate for aggregate in Aggregate if aggregate_result(aggregate, form)]

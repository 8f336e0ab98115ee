"""Filters as the document describes them, one shape for each form of operand.

`grammar` reads a filter and says everything that is wrong with it; a test holds the two together.
"""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from models.core.base import Input, JsonObject, example
from models.core.filters.grammar import Op
from models.core.filters.operands import PERIODS, Direction, Unit

FILTER_EXAMPLE: JsonObject = {
    "and": [
        {"field": "status", "op": "in", "value": ["open", "doing"]},
        {
            "or": [
                {"field": "price", "op": "gte", "value": 100},
                {"field": "due", "op": "relative", "value": "this_week"},
            ]
        },
    ]
}


class _Condition(Input):
    field: Annotated[
        str, Field(description="The key of a field, or a path such as `trigger.record.data.price`.")
    ]
    timezone: Annotated[
        str | None, Field(description="The IANA time zone in which days begin, by default UTC.")
    ] = None


class ValueCondition(_Condition):
    """Compares with one value. Empty values only match `ne` and `not_contains`."""

    model_config = example({"field": "price", "op": "gte", "value": 100})

    op: Literal[
        Op.EQ,
        Op.NE,
        Op.GT,
        Op.GTE,
        Op.LT,
        Op.LTE,
        Op.CONTAINS,
        Op.NOT_CONTAINS,
        Op.STARTS_WITH,
        Op.ENDS_WITH,
        Op.BEFORE,
        Op.AFTER,
        Op.ON,
    ]
    value: Any


class ListCondition(_Condition):
    """Compares with several values: `has_…` for a field with several values, `in` for one value."""

    model_config = example({"field": "status", "op": "in", "value": ["open", "doing"]})

    op: Literal[Op.IN, Op.NOT_IN, Op.HAS_ANY, Op.HAS_ALL, Op.HAS_NONE]
    value: list[Any]


class RangeCondition(_Condition):
    """Lies between two values, both included, the lower one first."""

    model_config = example({"field": "price", "op": "between", "value": [10, 20]})

    op: Literal[Op.BETWEEN]
    value: Annotated[list[Any], Field(min_length=2, max_length=2)]


class EmptyCondition(_Condition):
    """Has a value or is empty."""

    model_config = example({"field": "due", "op": "is_empty"})

    op: Literal[Op.IS_EMPTY, Op.IS_NOT_EMPTY]
    value: Literal[True] | None = None


class Span(Input):
    """A time from now; `minute` and `hour` are for dates with a time."""

    unit: Unit
    count: Annotated[int, Field(ge=1, le=10_000)]
    direction: Direction


class WithinCondition(_Condition):
    """Lies between now and so much earlier or later."""

    model_config = example(
        {
            "field": "due",
            "op": "within",
            "value": {"unit": "day", "count": 7, "direction": "future"},
        }
    )

    op: Literal[Op.WITHIN]
    value: Span


class RelativeCondition(_Condition):
    """In a period around now; weeks start on Monday."""

    model_config = example({"field": "due", "op": "relative", "value": "this_week"})

    op: Literal[Op.RELATIVE]
    value: Annotated[str, Field(json_schema_extra={"enum": list(PERIODS)})]


Condition = TypeAliasType(
    "Condition",
    Annotated[
        ValueCondition
        | ListCondition
        | RangeCondition
        | EmptyCondition
        | WithinCondition
        | RelativeCondition,
        Field(discriminator="op", description="A test of one value, by its operator."),
    ],
)


class AndFilter(Input):
    """All of these match."""

    parts: Annotated[list["Filter"], Field(alias="and")]


class OrFilter(Input):
    """At least one of these matches."""

    parts: Annotated[list["Filter"], Field(alias="or")]


class NotFilter(Input):
    """This does not match."""

    part: Annotated["Filter", Field(alias="not")]


Filter = TypeAliasType(
    "Filter",
    Annotated[
        AndFilter | OrFilter | NotFilter | Condition,
        Field(
            description="A tree of tests, at most 8 levels deep and with at most 64 tests.",
            examples=[FILTER_EXAMPLE],
        ),
    ],
)

for _shape in (AndFilter, OrFilter, NotFilter):
    _shape.model_rebuild()

"""What the document says of filters is what their reader takes."""

from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from pydantic import TypeAdapter

from models.automation.automations.rules.language.filters import filter_problems
from models.core.filters.grammar import Op
from models.core.filters.shapes import Filter

SCHEMA = Draft202012Validator(TypeAdapter(Filter).json_schema())
OPERANDS: dict[Op, Any] = {
    **dict.fromkeys(Op, "x"),
    **{op: ["x", 1] for op in (Op.IN, Op.NOT_IN, Op.HAS_ANY, Op.HAS_ALL, Op.HAS_NONE)},
    **dict.fromkeys((Op.BEFORE, Op.AFTER, Op.ON), "2026-01-31"),
    **dict.fromkeys((Op.IS_EMPTY, Op.IS_NOT_EMPTY), None),
    Op.BETWEEN: [1, 2],
    Op.WITHIN: {"unit": "day", "count": 7, "direction": "past"},
    Op.RELATIVE: "last_month",
}


def leaf(op: str, value: Any) -> dict[str, Any]:
    return {"field": "trigger.x", "op": op, "value": value}


def is_described(tree: Any) -> bool:
    return SCHEMA.is_valid(tree)


def is_taken(tree: Any) -> bool:
    return not list(filter_problems(tree))


@pytest.mark.parametrize("op", list(Op))
def test_every_operator_is_described_as_it_is_read(op: Op) -> None:
    test = leaf(op, OPERANDS[op])
    for tree in (test, {"and": [test, {"or": [test]}]}, {"not": test}):
        assert is_described(tree)
        assert is_taken(tree)


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"and": {}},
        {"xor": []},
        {"field": "trigger.x"},
        leaf("like", "x"),
        leaf("between", [1]),
        leaf("relative", "someday"),
        leaf("within", {"unit": "day", "count": 0, "direction": "past"}),
        leaf("within", {"unit": "day", "count": 7}),
        leaf("eq", 1) | {"more": 1},
        {"and": [], "or": []},
    ],
)
def test_a_refused_filter_is_not_described(tree: Any) -> None:
    assert not is_described(tree)
    assert not is_taken(tree)

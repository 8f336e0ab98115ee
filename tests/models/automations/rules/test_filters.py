"""Filters over variables in memory."""

from typing import Any

import pytest

from models.automations.rules.filters import filter_problems, matches
from models.expressions.rules.errors import BindingError

DATA = {
    "trigger": {
        "n": 5,
        "one": 1,
        "yes": True,
        "text": "Hello World",
        "empty": "",
        "tags": ["a", "b"],
        "deep": {"a": [{"b": True}]},
        "day": "2026-03-01",
        "at": "2026-03-01T10:00:00+02:00",
    }
}


@pytest.mark.parametrize(
    ("field", "op", "value", "expected"),
    [
        ("n", "eq", 5.0, True),
        ("n", "ne", 5, False),
        ("one", "eq", True, False),
        ("yes", "eq", 1, False),
        ("yes", "eq", True, True),
        ("tags", "eq", ["a", "b"], True),
        ("deep", "eq", {"a": [{"b": True}]}, True),
        ("deep", "eq", {"a": [{"b": 1}]}, False),
        ("gone", "eq", None, True),
        ("n", "in", [1, 5], True),
        ("n", "in", 5, False),
        ("n", "not_in", [1], True),
        ("text", "contains", "hello", True),
        ("text", "not_contains", "x", True),
        ("tags", "contains", "a", True),
        ("n", "contains", 5, False),
        ("text", "starts_with", "HELLO", True),
        ("text", "ends_with", "world", True),
        ("n", "gt", 4.5, True),
        ("n", "gt", "4", False),
        ("yes", "gt", 0, False),
        ("n", "gte", 5, True),
        ("n", "lt", 5, False),
        ("n", "lte", 5, True),
        ("text", "lt", "I", True),
        ("gone", "lt", 5, False),
        ("n", "between", [5, 6], True),
        ("n", "between", [6, 9], False),
        ("empty", "is_empty", None, True),
        ("gone", "is_empty", None, True),
        ("n", "is_not_empty", None, True),
        ("day", "before", "2026-03-02", True),
        ("at", "after", "2026-03-01T07:59:59Z", True),
        ("at", "before", "2026-03-01T08:00:00Z", False),
        ("text", "before", "2026-01-01", False),
        ("tags", "has_any", ["b", "z"], True),
        ("tags", "has_all", ["a", "z"], False),
        ("tags", "has_all", ["a", "b"], True),
        ("tags", "has_none", ["z"], True),
        ("gone", "has_any", ["z"], False),
    ],
)
def test_an_operator(field: str, op: str, value: object, expected: bool) -> None:
    condition = {"field": f"trigger.{field}", "op": op, "value": value}
    assert matches(condition, DATA) is expected
    assert matches({"not": condition}, DATA) is not expected
    assert matches({"and": [condition, {"or": [condition]}]}, DATA) is expected
    assert list(filter_problems(condition)) == []


def test_empty_groups() -> None:
    assert matches({"and": []}, DATA)
    assert not matches({"or": []}, DATA)


def _nested(depth: int) -> Any:
    tree: Any = {"field": "trigger.n", "op": "eq", "value": 5}
    for _ in range(depth):
        tree = {"not": tree}
    return tree


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [],
        {},
        {"and": 1},
        {"and": [], "or": []},
        {"field": "trigger.n"},
        {"field": "trigger.n", "op": "like", "value": 1},
        {"field": "trigger.n", "op": ["eq"], "value": 1},
        {"field": 1, "op": "eq"},
        {"field": "[?", "op": "eq"},
        {"field": "trigger.n", "op": "eq", "value": 1, "extra": 1},
        _nested(1_000),
        {"and": [{}] * 300},
    ],
)
def test_what_is_no_filter_is_refused(tree: Any) -> None:
    assert list(filter_problems(tree))
    with pytest.raises(BindingError):
        matches(tree, DATA)


def test_a_field_begins_with_a_variable() -> None:
    ((path, message),) = filter_problems({"and": [{"field": "price", "op": "eq", "value": 1}]})
    assert path == "filter.and.0"
    assert "price" in message

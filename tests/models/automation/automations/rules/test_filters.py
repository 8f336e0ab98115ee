"""Filters over variables in memory."""

from datetime import UTC, datetime
from typing import Any

import pytest

from models.automation.automations.rules.language.filters import filter_problems, matches
from models.core.expressions.rules.errors import BindingError

NOW = datetime(2026, 3, 2, tzinfo=UTC)
"""A Monday."""

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
        "first": "0001-01-01",
        "last": "9999-12-31",
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
        ("day", "after", "2026-02-28T23:59:59Z", True),
        ("day", "after", "2026-03-01", False),
        ("at", "after", "2026-03-01", False),
        ("at", "after", "2026-02-28", True),
        ("day", "on", "2026-03-01", True),
        ("at", "on", "2026-03-01", True),
        ("at", "on", "2026-03-02", False),
        ("n", "on", "2026-03-01", False),
        ("gone", "on", "2026-03-01", False),
        ("day", "relative", "yesterday", True),
        ("at", "relative", "this_week", False),
        ("at", "relative", "last_week", True),
        ("text", "relative", "today", False),
        ("at", "within", {"unit": "hour", "count": 16, "direction": "past"}, True),
        ("at", "within", {"unit": "hour", "count": 15, "direction": "past"}, False),
        ("day", "within", {"unit": "day", "count": 2, "direction": "future"}, False),
        ("tags", "has_any", ["b", "z"], True),
        ("tags", "has_all", ["a", "z"], False),
        ("tags", "has_all", ["a", "b"], True),
        ("tags", "has_none", ["z"], True),
        ("gone", "has_any", ["z"], False),
    ],
)
def test_an_operator(field: str, op: str, value: object, expected: bool) -> None:
    condition = {"field": f"trigger.{field}", "op": op, "value": value}
    assert matches(condition, DATA, NOW) is expected
    assert matches({"not": condition}, DATA, NOW) is not expected
    assert matches({"and": [condition, {"or": [condition]}]}, DATA, NOW) is expected
    assert list(filter_problems(condition)) == []


def test_empty_groups() -> None:
    assert matches({"and": []}, DATA, NOW)
    assert not matches({"or": []}, DATA, NOW)


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
def test_an_invalid_filter_is_refused(tree: Any) -> None:
    assert list(filter_problems(tree))
    with pytest.raises(BindingError):
        matches(tree, DATA, NOW)


def test_a_field_begins_with_a_variable() -> None:
    ((path, message),) = filter_problems({"and": [{"field": "price", "op": "eq", "value": 1}]})
    assert path == "filter.and.0"
    assert "price" in message


@pytest.mark.parametrize(
    ("field", "op", "value", "zone", "expected"),
    [
        ("day", "relative", "today", "America/New_York", True),
        ("day", "relative", "today", "Europe/Berlin", False),
        ("at", "on", "2026-02-28", "America/Los_Angeles", False),
        ("at", "on", "2026-02-28", "Pacific/Pago_Pago", True),
        ("at", "on", "2026-02-28", None, False),
        ("day", "before", "2026-03-01T04:00:00Z", "America/New_York", False),
        ("day", "before", "2026-03-01T04:00:00Z", "UTC", True),
        ("at", "before", "9999-12-31", "America/New_York", True),
        ("at", "after", "9999-12-31", "America/New_York", False),
        ("at", "after", "0001-01-01", "Europe/Berlin", True),
        ("first", "before", "2026-03-01T04:00:00Z", "Europe/Berlin", True),
        ("last", "after", "2026-03-01T04:00:00Z", "America/New_York", True),
        ("last", "on", "9999-12-31", "America/New_York", True),
    ],
)
def test_days_begin_in_a_time_zone(
    field: str, op: str, value: object, zone: str | None, expected: bool
) -> None:
    leaf = {"field": f"trigger.{field}", "op": op, "value": value, "timezone": zone}
    assert list(filter_problems(leaf)) == []
    assert matches(leaf, DATA, NOW) is expected


@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("before", "tomorrow"),
        ("after", 5),
        ("on", None),
        ("within", "7 days"),
        ("within", {"unit": "eon", "count": 1, "direction": "past"}),
        ("within", {"unit": "year", "count": 10_000, "direction": "past"}),
        ("relative", "someday"),
        ("between", [1]),
    ],
)
def test_an_operand_that_says_nothing_is_named(op: str, value: object) -> None:
    ((path, message),) = filter_problems({"field": "trigger.at", "op": op, "value": value})
    assert path == "filter.value"
    assert message
    bound = {"type": "trigger", "value": "x"}
    assert list(filter_problems({"field": "trigger.at", "op": op, "value": bound})) == []


@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("within", {"unit": "hour", "count": 1, "direction": "past"}),
        ("within", None),
        ("relative", "someday"),
    ],
)
def test_a_stretch_that_a_date_does_not_have_fails(op: str, value: object) -> None:
    with pytest.raises(BindingError, match=op):
        matches({"field": "trigger.day", "op": op, "value": value}, DATA, NOW)


def test_a_time_zone_is_known() -> None:
    leaf = {"field": "trigger.at", "op": "on", "value": "2026-03-01", "timezone": "Mars/Olympus"}
    ((path, message),) = filter_problems(leaf)
    assert (path, "IANA" in message) == ("filter", True)

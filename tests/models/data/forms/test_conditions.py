"""A filter means for answers in memory what it means for records in the database."""

from datetime import UTC, datetime
from typing import Any

import pytest

from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs, Option
from models.data.records.rules.query.filters import holds, read_filter
from runtime.ids import new_id

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


def _field(key: str, kind: FieldKind, **more: Any) -> FieldSpec:
    return FieldSpec(id=new_id(), key=key, label=key, kind=kind, **more)


_OPTIONS = tuple(
    Option(id=key, key=key, name=key, color="gray", order=place)
    for place, key in enumerate(("red", "blue"))
)
FIELDS: FieldSpecs = {
    spec.key: spec
    for spec in (
        _field("name", FieldKind.TEXT),
        _field("size", FieldKind.NUMBER),
        _field("done", FieldKind.CHECKBOX),
        _field("day", FieldKind.DATE),
        _field("at", FieldKind.DATETIME),
        _field("clock", FieldKind.TIME),
        _field("color", FieldKind.SELECT, options=_OPTIONS),
        _field("colors", FieldKind.MULTI_SELECT, options=_OPTIONS),
        _field("place", FieldKind.LOCATION),
    )
}
ANSWERS = {
    "name": "Ada Lovelace",
    "size": 1.5,
    "done": True,
    "day": "2026-05-20",
    "at": "2026-05-20T09:30:00.000Z",
    "clock": "09:30",
    "color": "red",
    "colors": ["red"],
    "place": {"lat": 1, "lng": 2},
}

HOLD: list[tuple[str, str, Any]] = [
    ("name", "eq", "Ada Lovelace"),
    ("name", "in", ["x", "Ada Lovelace"]),
    ("name", "contains", "LOVE"),
    ("name", "starts_with", "ada"),
    ("name", "ends_with", "lace"),
    ("name", "gt", "Ada"),
    ("size", "eq", 1.5),
    ("size", "between", [1, 1.5]),
    ("size", "lt", 2),
    ("size", "gte", 1.5),
    ("done", "eq", True),
    ("day", "on", "2026-05-20"),
    ("day", "before", "2026-05-21"),
    ("day", "relative", "today"),
    ("day", "within", {"unit": "day", "count": 3, "direction": "future"}),
    ("at", "on", "2026-05-20"),
    ("at", "after", "2026-05-20T09:29:59Z"),
    ("at", "eq", "2026-05-20T11:30:00+02:00"),
    ("clock", "lte", "09:30"),
    ("color", "eq", "red"),
    ("color", "in", ["red", "blue"]),
    ("colors", "has_any", ["red", "blue"]),
    ("colors", "has_all", ["red"]),
    ("colors", "contains", "red"),
    ("place", "is_not_empty", None),
]
FAIL: list[tuple[str, str, Any]] = [
    ("name", "eq", "ada lovelace"),
    ("name", "contains", "%"),
    ("name", "is_empty", None),
    ("size", "gt", 1.5),
    ("size", "ne", 1.5),
    ("done", "eq", False),
    ("day", "after", "2026-05-20"),
    ("at", "before", "2026-05-20T09:30:00Z"),
    ("color", "not_in", ["red"]),
    ("colors", "has_all", ["red", "blue"]),
    ("colors", "has_none", ["red"]),
    ("place", "is_empty", None),
]


def _holds(leaf: tuple[str, str, Any], answers: dict[str, Any]) -> bool:
    field, op, value = leaf
    raw = {"field": field, "op": op, **({} if value is None else {"value": value})}
    return holds(read_filter(raw, FIELDS, NOW), answers)


@pytest.mark.parametrize("leaf", HOLD, ids=lambda leaf: f"{leaf[0]}-{leaf[1]}")
def test_it_holds(leaf: tuple[str, str, Any]) -> None:
    assert _holds(leaf, ANSWERS)


@pytest.mark.parametrize("leaf", FAIL, ids=lambda leaf: f"{leaf[0]}-{leaf[1]}")
def test_it_does_not_hold(leaf: tuple[str, str, Any]) -> None:
    assert not _holds(leaf, ANSWERS)


@pytest.mark.parametrize("leaf", HOLD, ids=lambda leaf: f"{leaf[0]}-{leaf[1]}")
def test_nothing_satisfies_no_positive_test(leaf: tuple[str, str, Any]) -> None:
    assert not _holds(leaf, {})


def test_an_absent_value_satisfies_the_negations() -> None:
    for field, op, value in [
        ("name", "ne", "x"),
        ("name", "is_empty", None),
        ("color", "not_in", ["red"]),
        ("colors", "has_none", ["red"]),
        ("done", "eq", False),
        ("done", "is_empty", None),
    ]:
        assert _holds((field, op, value), {})


def test_trees() -> None:
    yes = {"field": "size", "op": "gt", "value": 1}
    no = {"field": "size", "op": "gt", "value": 2}
    tree: Any
    for tree, expected in [
        ({"and": [yes, yes]}, True),
        ({"and": [yes, no]}, False),
        ({"or": [no, yes]}, True),
        ({"or": []}, False),
        ({"and": []}, True),
        ({"not": no}, True),
        ({"not": {"or": [no, yes]}}, False),
    ]:
        assert holds(read_filter(tree, FIELDS, NOW), ANSWERS) is expected

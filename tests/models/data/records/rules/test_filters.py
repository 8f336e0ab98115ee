"""What a filter tree may say, and where it is wrong."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from models.core.filters.grammar import OPERATORS, AllOf, AnyOf, Not, Op
from models.core.filters.operands import Anchor, Empty, In, Range, Substring
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs, Option
from models.data.fields.rules.values import KIND_RULES
from models.data.records.rules.query.filters import Leaf, read_filter
from models.data.records.rules.query.sql import filter_condition
from runtime.errors import ValidationError
from tests.support.cells import cells

NOW = datetime(2026, 5, 20, 22, 30, tzinfo=UTC)
USER = "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f"

FIELDS: FieldSpecs = {
    kind.value: FieldSpec(
        id=uuid.uuid4(),
        key=kind.value,
        label=kind.value,
        kind=kind,
        options=(Option(id="1", key="low", name="Low", color="gray", order=0),),
        settings={"inverseFieldId": USER},
    )
    for kind in KIND_RULES
}

OPERANDS: dict[Op, Any] = {
    Op.BETWEEN: "pair",
    Op.IN: "list",
    Op.NOT_IN: "list",
    Op.HAS_ANY: "list",
    Op.HAS_ALL: "list",
    Op.HAS_NONE: "list",
    Op.WITHIN: {"unit": "day", "count": 7, "direction": "past"},
    Op.RELATIVE: "last_month",
    Op.IS_EMPTY: None,
    Op.IS_NOT_EMPTY: None,
}

VALUES: dict[str, Any] = {
    "text": "x",
    "number": 5,
    "boolean": True,
    "day": "2026-05-20",
    "moment": "2026-05-20T10:00:00Z",
    "time": "10:00",
    "option": "low",
    "options": "low",
    "user": USER,
    "users": USER,
    "files": USER,
    "records": USER,
    "values": "x",
}

EVERY_USE = [(kind, op) for kind, rule in KIND_RULES.items() for op in OPERATORS[rule.form]]


def operand(kind: FieldKind, op: Op) -> Any:
    shape = OPERANDS.get(op, "one")
    if not isinstance(shape, str) or op is Op.RELATIVE:
        return shape
    value = VALUES[KIND_RULES[kind].form.value]
    return {"one": value, "list": [value], "pair": [value, value]}[shape]


def read(raw: Any) -> Any:
    return read_filter(raw, FIELDS, NOW)


def test_every_operator_of_every_kind_compiles() -> None:
    never_null = ("coalesce", " IS ", "EXISTS", "count(DISTINCT")
    with cells() as cell:
        for kind, op in EVERY_USE:
            with cell(f"{op.value} of {kind.value}"):
                tree = read({"field": kind.value, "op": op.value, "value": operand(kind, op)})
                assert any(word in str(filter_condition(tree)) for word in never_null)


def test_every_operator_refuses_an_operand_of_another_type() -> None:
    with cells() as cell:
        for kind, op in EVERY_USE:
            with cell(f"{op.value} of {kind.value}"):
                with pytest.raises(ValidationError) as refusal:
                    read({"field": kind.value, "op": op.value, "value": {"wrong": 1}})
                assert refusal.value.details[0].path == "filter.value"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ([], "filter"),
        ({}, "filter"),
        ({"and": [], "or": []}, "filter"),
        ({"xor": []}, "filter"),
        ({"and": {}}, "filter.and"),
        ({"or": [{"and": [7]}]}, "filter.or.0.and.0"),
        ({"not": []}, "filter.not"),
        ({"field": "nobody", "op": "eq", "value": 1}, "filter.field"),
        ({"field": ["text"], "op": "eq", "value": 1}, "filter.field"),
        ({"field": "text", "op": "like", "value": "x"}, "filter.op"),
        ({"field": "text", "op": ["eq"], "value": "x"}, "filter.op"),
        ({"field": "text", "value": "x"}, "filter.op"),
        ({"field": "json", "op": "eq", "value": "x"}, "filter.op"),
        ({"field": "text", "op": "eq", "value": "x", "case": True}, "filter.case"),
        ({"field": "text", "op": "eq", "value": None}, "filter.value"),
        ({"field": "text", "op": "eq", "value": "a\x00"}, "filter.value"),
        ({"field": "text", "op": "is_empty", "value": "x"}, "filter.value"),
        ({"field": "number", "op": "eq", "value": "5"}, "filter.value"),
        ({"field": "number", "op": "between", "value": [2, 1]}, "filter.value"),
        ({"field": "number", "op": "between", "value": [1]}, "filter.value"),
        ({"field": "number", "op": "in", "value": list(range(501))}, "filter.value"),
        ({"field": "select", "op": "eq", "value": "high"}, "filter.value"),
        ({"field": "date", "op": "relative", "value": "someday"}, "filter.value"),
        ({"field": "date", "op": "on", "value": "2026-05-20T10:00:00Z"}, "filter.value"),
        ({"field": "date", "op": "eq", "value": "2026-05-20", "timezone": "x"}, "filter.timezone"),
        ({"field": "date", "op": "eq", "value": "2026-05-20", "timezone": 1}, "filter.timezone"),
    ],
)
def test_each_error_is_named_by_its_path(raw: Any, path: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        read(raw)
    assert [detail.path for detail in refusal.value.details] == [path]


@pytest.mark.parametrize(
    "stretch",
    [
        {"unit": "hour", "count": 1, "direction": "past"},
        {"unit": "day", "count": 0, "direction": "past"},
        {"unit": "day", "count": 1.5, "direction": "past"},
        {"unit": "day", "count": "1", "direction": "past"},
        {"unit": "eon", "count": 1, "direction": "past"},
        {"unit": ["day"], "count": 1, "direction": "past"},
        {"unit": "day", "count": 1, "direction": "up"},
        {"unit": "day", "count": 1},
        {"unit": "year", "count": 10_000, "direction": "future"},
    ],
)
def test_stretches_that_are_refused(stretch: Any) -> None:
    with pytest.raises(ValidationError):
        read({"field": "date", "op": "within", "value": stretch})


def leaf() -> dict[str, Any]:
    return {"field": "text", "op": "eq", "value": "x"}


def test_filters_are_bounded_in_size_and_depth() -> None:
    read({"and": [leaf() for _ in range(64)]})
    with pytest.raises(ValidationError, match="at most 64 conditions"):
        read({"and": [leaf() for _ in range(65)]})
    deep: dict[str, Any] = leaf()
    for _ in range(7):
        deep = {"not": deep}
    read(deep)
    with pytest.raises(ValidationError, match="levels deep"):
        read({"not": deep})
    with pytest.raises(ValidationError):
        read({"or": [{"and": []} for _ in range(200)]})


def test_negative_operators_are_the_rest_of_the_positive_ones() -> None:
    tree = read({"field": "text", "op": "not_contains", "value": "x"})
    assert tree == Not(Leaf(FIELDS["text"], Substring("x", Anchor.ANYWHERE)))


def test_the_shape_of_a_tree() -> None:
    tree = read({"or": [leaf(), {"not": {"and": [leaf()]}}]})
    inner = Leaf(FIELDS["text"], In(("x",)))
    assert tree == AnyOf((inner, Not(AllOf((inner,)))))


def test_days_of_a_moment_begin_in_the_time_zone_asked_for() -> None:
    tree = read(
        {"field": "datetime", "op": "relative", "value": "today", "timezone": "Europe/Berlin"}
    )
    start = datetime(2026, 5, 20, 22, tzinfo=UTC)
    assert tree.condition == Range(start, start.replace(day=21), with_high=False)


def test_a_date_stands_for_its_whole_day_in_a_moment_field() -> None:
    after = read({"field": "datetime", "op": "after", "value": "2026-05-20"})
    assert after.condition == Range(low=datetime(2026, 5, 21, tzinfo=UTC))
    before = read({"field": "datetime", "op": "before", "value": "2026-05-20"})
    assert before.condition == Range(high=datetime(2026, 5, 20, tzinfo=UTC), with_high=False)


def test_emptiness_needs_no_operand() -> None:
    assert read({"field": "text", "op": "is_empty"}).condition == Empty()

"""The order in which the computed values of a record follow from others of it."""

from typing import Any

import pytest

from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.records.rules.computed_order import (
    Stale,
    followers_of,
    formulas_in_order,
    merged,
    stale_after,
    with_formulas,
)
from runtime.ids import new_id


def field(key: str, kind: FieldKind = FieldKind.NUMBER, **settings: Any) -> FieldSpec:
    return FieldSpec(id=new_id(), key=key, label=key, kind=kind, settings=settings)


def formula(key: str, expression: str) -> FieldSpec:
    return field(key, FieldKind.FORMULA, expression=expression, resultKind="number")


def fields(*specs: FieldSpec) -> dict[str, FieldSpec]:
    return {spec.key: spec for spec in specs}


CHAIN = fields(
    formula("last", "record.middle + 1"),
    formula("middle", "record.first + record.b"),
    formula("first", "record.a + 1"),
    formula("alone", "record.c + 1"),
    *(field(key) for key in "abc"),
)
FOLLOWING = fields(
    formula("tax", "record.sum + 1"),
    field("sum", FieldKind.ROLLUP, relationFieldKey="lines"),
    field("names", FieldKind.LOOKUP, relationFieldKey="people"),
    field("lines", FieldKind.RELATION),
    field("people", FieldKind.RELATION),
)


def test_a_formula_comes_after_those_it_reads() -> None:
    assert [spec.key for spec, _ in formulas_in_order(CHAIN)] == [
        "first",
        "alone",
        "middle",
        "last",
    ]


def test_formulas_that_follow_from_each_other_are_still_all_there() -> None:
    circle = fields(
        formula("x", "record.y + 1"), formula("y", "record.x + 1"), formula("z", "record.y + 1")
    )
    assert {spec.key for spec, _ in formulas_in_order(circle)} == {"x", "y", "z"}


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ({"a"}, ["first", "middle", "last"]),
        ({"b"}, ["middle", "last"]),
        ({"c"}, ["alone"]),
        ({"unknown"}, []),
        (None, ["first", "alone", "middle", "last"]),
    ],
)
def test_values_that_follow_from_a_change(changed: set[str] | None, stale: list[str]) -> None:
    assert [spec.key for spec in stale_after(CHAIN, changed)] == stale


@pytest.mark.parametrize(
    ("changed", "needing", "stale"),
    [
        ({"lines"}, (), ["sum", "tax"]),
        ({"people"}, (), ["names"]),
        (set(), ("sum",), ["sum", "tax"]),
        (set(), (), []),
    ],
)
def test_values_of_related_records_come_first(
    changed: set[str], needing: tuple[str, ...], stale: list[str]
) -> None:
    assert [spec.key for spec in stale_after(FOLLOWING, changed, needing)] == stale


def test_keys_with_what_follows_from_them() -> None:
    assert with_formulas(CHAIN, {"b"}) == {"b", "middle", "last"}
    assert followers_of(FOLLOWING) == {"lines": ["sum"], "people": ["names"]}


def test_each_database_stands_once() -> None:
    one, two, record = sorted(new_id() for _ in range(3))
    parts = [
        Stale(two, [record], ["a"]),
        Stale(one, [record], ["b"]),
        Stale(two, [one], ["c"]),
        Stale(one, [], ["d"]),
        Stale(one, [two], []),
    ]
    assert merged(parts) == [Stale(one, {record}, {"b"}), Stale(two, {record, one}, {"a", "c"})]

"""Formulas: what they read, what they give, and what is refused with a sentence."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from models.core.values import InvalidValueError
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs
from models.data.fields.rules.values import ResultKind
from models.data.formulas.rules import FieldRef, compile_formula, resolve_derived

KINDS = {
    "title": FieldKind.TEXT,
    "price": FieldKind.NUMBER,
    "count": FieldKind.NUMBER,
    "day": FieldKind.DATE,
    "at": FieldKind.DATETIME,
    "done": FieldKind.CHECKBOX,
    "tags": FieldKind.MULTI_SELECT,
    "prices": FieldKind.LOOKUP,
    "meta": FieldKind.JSON,
    "in": FieldKind.NUMBER,
    "package": FieldKind.TEXT,
    "friends": FieldKind.RELATION,
    "spent": FieldKind.TIMER,
    "press": FieldKind.BUTTON,
}
VALUES = {
    "title": "Ada",
    "price": 5,
    "count": 2.5,
    "day": "2026-01-31",
    "at": "2026-01-31T09:00:00.000Z",
    "done": True,
    "tags": ["a", "b"],
    "prices": [1, 2.5],
    "meta": {"deep": [1]},
    "in": 3,
    "package": "box",
}


def field(key: str, kind: FieldKind, **settings: Any) -> FieldSpec:
    return FieldSpec(id=uuid4(), key=key, label=key, kind=kind, settings=settings)


FIELDS: FieldSpecs = {key: field(key, kind) for key, kind in KINDS.items()} | {
    "total": field("total", FieldKind.FORMULA, resultKind="number"),
    "best": field("best", FieldKind.ROLLUP, resultKind="date"),
}


def evaluate(
    text: str, values: dict[str, Any] = VALUES, result: ResultKind = ResultKind.JSON
) -> Any:
    return compile_formula(text, FIELDS, result).evaluate(values)


@pytest.mark.parametrize(
    ("text", "result", "without"),
    [
        ("record.price * record.count", 12.5, None),
        ("record.price * 2", 10, None),
        ("2 * (record.price + 1) / 4", 3, None),
        ("record['price'] + record[\"count\"]", 7.5, None),
        ("record.price > 4 && record.done", True, False),
        ("record.price == null ? 0 : record.price", 5, 0),
        ("coalesce(record.price, 0) * 2", 10, 0),
        ("coalesce(record.title, 'None').substring(1)", "da", "one"),
        ("record.title + '!'", "Ada!", None),
        ("record.title == null", False, True),
        ("record.done ? 'yes' : 'no'", "yes", "no"),
        ("record.tags.size()", 2, 0),
        ("'a' in record.tags", True, False),
        ("record.tags.map(t, t + t).join(',')", "aa,bb", ""),
        ("record.prices.map(p, p * 2.0)", [2, 5], []),
        ("record.meta.deep[0]", 1, None),
        ("record.day.getFullYear()", 2026, None),
        ("record.at - record.day", 9 * 3600, None),
        ("record.day == null ? 'none' : 'some'", "some", "none"),
        ("record['in'] + 1", 4, None),
        ("record.package", "box", None),
        ("'record.price'", "record.price", "record.price"),
        ("1 + 1", 2, 2),
    ],
)
def test_a_formula_gives_its_value_and_null_where_that_needs_one(
    text: str, result: Any, without: Any
) -> None:
    assert evaluate(text) == result
    assert evaluate(text, {}) == without


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("1 + 1", set()),
        ("record.price + record['count']", {"price", "count"}),
        ("record // the price\n .price", {"price"}),
        ("record['in']", {"in"}),
        ("record.total + 1", {"total"}),
        ("'record.price' + record.title", {"title"}),
        ("record.best == null", {"best"}),
        ("record.spent / 60000.0", {"spent"}),
    ],
)
def test_the_fields_that_a_formula_reads_are_known(text: str, keys: set[str]) -> None:
    assert compile_formula(text, FIELDS).dependencies == keys


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("record.price +", "line 1, column 15"),
        ("record.nothing", 'reads "nothing"'),
        ("record", "name each field"),
        ("record[record.title]", "name each field"),
        ("record['pri' + 'ce']", "name each field"),
        ("record.friends", "a relation field"),
        ("record.press", "a button field"),
        ("has(record.price)", "compare it with null"),
        ("record.?price", "compare it with null"),
        ("record[?'price']", "compare it with null"),
        ("trigger.x", "undeclared reference to 'trigger.x'"),
        ("trigger.x == record.title", "'trigger.x'; known: record.title"),
        ("record.title + record.price", "'(string, double)'"),
        ("size(record.tags) * record.price", "double(…)"),
        ("record.price.foo", "compile"),
        ("now()", "undeclared reference"),
        ("''.__class__", "compile"),
        ("1 +" * 2_000 + "1", "at most 4000"),
    ],
)
def test_a_wrong_formula_is_refused_with_a_sentence(text: str, reason: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        compile_formula(text, FIELDS)
    assert reason in str(refusal.value)
    assert "wrapper" not in str(refusal.value)
    assert "known: none" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "kind", "stored"),
    [
        ("record.title", ResultKind.TEXT, "Ada"),
        ("record.price * 2", ResultKind.NUMBER, 10),
        ("record.price / 2", ResultKind.NUMBER, 2.5),
        ("record.done", ResultKind.CHECKBOX, True),
        ("record.day", ResultKind.DATE, "2026-01-31"),
        ("record.at + duration('20h')", ResultKind.DATE, "2026-02-01"),
        ("'2026-02-03'", ResultKind.DATE, "2026-02-03"),
        ("record.day", ResultKind.DATETIME, "2026-01-31T00:00:00.000Z"),
        ("{'a': [record.price]}", ResultKind.JSON, {"a": [5]}),
        ("record.meta.deep", ResultKind.NUMBER, None),
        ("record.meta.deep", ResultKind.TEXT, None),
        ("'tomorrow'", ResultKind.DATE, None),
        ("record.price / 0.0", ResultKind.NUMBER, None),
        ("record.meta.deep[7]", ResultKind.NUMBER, None),
        ("record.title.matches('(')", ResultKind.CHECKBOX, None),
    ],
)
def test_a_result_has_the_stored_form_of_its_kind_or_is_none(
    text: str, kind: ResultKind, stored: Any
) -> None:
    value = evaluate(text, VALUES, kind)
    assert value == stored
    assert type(value) is type(stored)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("record.price", ResultKind.TEXT),
        ("record.title", ResultKind.NUMBER),
        ("record.price", ResultKind.CHECKBOX),
        ("record.done", ResultKind.DATE),
        ("record.tags", ResultKind.TEXT),
    ],
)
def test_a_formula_that_cannot_give_its_kind_is_refused(text: str, kind: ResultKind) -> None:
    with pytest.raises(InvalidValueError, match=f"where resultKind is {kind}"):
        compile_formula(text, FIELDS, kind)


def test_a_value_of_another_form_counts_as_empty() -> None:
    wrong = {"price": "5", "day": 7, "done": "yes", "tags": "a", "title": 3}
    assert evaluate("record.price == null && record.day == null", wrong) is True
    assert evaluate("record.title == null && !record.done && record.tags == []", wrong) is True


def test_the_budget_of_iterations_holds() -> None:
    text = "record.tags.map(x, record.tags.map(y, record.tags.map(z, 1)))"
    assert evaluate(text, {"tags": ["a"] * 100}) is None


@pytest.mark.parametrize(
    ("text", "result", "expected"),
    [
        ("record.price * 3", ResultKind.NUMBER, 0.3),
        ("record.price + record.count == 0.3", ResultKind.CHECKBOX, True),
        ('string(record.price * 3) + " €"', ResultKind.TEXT, "0.3 €"),
        ("record.prices.map(each, each * 3.0)", ResultKind.JSON, [3.3, 3]),
        ("record.price - record.price", ResultKind.NUMBER, 0),
    ],
)
def test_numbers_are_computed_as_decimals(text: str, result: ResultKind, expected: Any) -> None:
    values = {"price": 0.1, "count": 0.2, "prices": [1.1, 1]}
    assert evaluate(text, values, result) == expected


@pytest.mark.parametrize("text", ["record.price", "record.price + 1", "record.prices.map(x, x)"])
def test_a_number_of_more_digits_than_a_double_holds_has_no_result(text: str) -> None:
    long = 1147386954405658705
    assert evaluate(text, {"price": long, "prices": [long]}) is None
    assert evaluate("record.price", {"price": 2**53 - 1}, ResultKind.NUMBER) == 2**53 - 1


BASES = [field("f0", FieldKind.NUMBER), field("f0", FieldKind.FORMULA, expression="1")]


@pytest.mark.parametrize(("base", "deepest"), list(zip(BASES, (10, 9), strict=True)))
def test_formulas_build_on_each_other_ten_levels_deep(base: FieldSpec, deepest: int) -> None:
    database = UUID(int=1)
    chain = [base] + [
        field(f"f{at}", FieldKind.FORMULA, expression=f"record.f{at - 1} + 1")
        for at in range(1, deepest + 2)
    ]
    derived = resolve_derived({database: {spec.key: spec for spec in chain}})
    deep = FieldRef(database, f"f{deepest}")
    assert derived.fields[deep].settings["resultKind"] == ResultKind.NUMBER
    assert {ref.key for ref in derived.problems} == {f"f{deepest + 1}"}


def test_a_formula_that_depends_on_itself_is_refused_with_the_way_round() -> None:
    database = UUID(int=1)
    circle = {
        key: field(key, FieldKind.FORMULA, expression=f"record.{other} + 1")
        for key, other in (("a", "b"), ("b", "a"), ("c", "a"))
    }
    derived = resolve_derived({database: circle})
    assert {ref.key for ref in derived.problems} == {"a", "b"}
    assert not derived.fields


@pytest.mark.parametrize(
    ("expression", "wanted", "result"),
    [
        ("record.price + 1", None, "number"),
        ("record.title + 'x'", None, "text"),
        ("record.price > 1", None, "checkbox"),
        ("record.meta", None, "json"),
        ("record.price", "number", "number"),
        ("record.title", "number", None),
        ("record.gone", None, None),
    ],
)
def test_a_formula_has_the_kind_of_result_that_it_can_give(
    expression: str, wanted: str | None, result: str | None
) -> None:
    database = UUID(int=1)
    asked = {} if wanted is None else {"resultKind": wanted}
    spec = field("f", FieldKind.FORMULA, expression=expression, **asked)
    plain = {key: one for key, one in FIELDS.items() if not one.derived}
    derived = resolve_derived({database: {**plain, "f": spec}})
    if result is None:
        [problem] = derived.problems.values()
        assert problem.path == "settings.expression"
    else:
        assert derived.fields[FieldRef(database, "f")].settings["resultKind"] == result

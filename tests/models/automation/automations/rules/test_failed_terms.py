"""The term of a filter that did not hold, with the values that it read."""

from typing import Any

import pytest

from models.automation.automations.rules.language.filters import (
    MAX_TEXT,
    conjuncts,
    failed_term,
)
from models.core.expressions.rules.errors import BindingError


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ["a"]),
        ("a && b", ["a", "b"]),
        ("a&&b && c", ["a", "b", "c"]),
        ("a && f(b)", ["a", "f(b)"]),
        ("f(a && b)", ["f(a && b)"]),
        ("f(a) && [b && c][0] && {'d': e && f}.d", ["f(a)", "[b && c][0]", "{'d': e && f}.d"]),
        ("a || b && c", ["a || b && c"]),
        ("(a || b) && c", ["(a || b)", "c"]),
        ("a && b ? c : d", ["a && b ? c : d"]),
        ("a == '&&' && b", ["a == '&&'", "b"]),
        ("a == '|| ?' && b", ["a == '|| ?'", "b"]),
        ("a & b", ["a & b"]),
        ("a | b && c", ["a | b", "c"]),
        ("a && ", ["a"]),
        ("&&", ["&&"]),
    ],
)
def test_an_expression_is_taken_apart_at_its_outermost_and(text: str, parts: list[str]) -> None:
    assert conjuncts(text) == parts


VARIABLES: dict[str, Any] = {"record": {"total": 5, "note": "x" * 600}, "kind": "order"}
BIG = {"field": "record.total", "op": "gt", "value": 9}
ORDER = {"field": "kind", "op": "eq", "value": "order"}


def holds(part: object) -> bool:
    """The parts that stand in this test; `record.absent` cannot be evaluated."""
    if "absent" in str(part):
        raise BindingError("record.absent is missing")
    return part in (ORDER, "kind == 'order'", {"and": [ORDER]})


@pytest.mark.parametrize(
    ("predicate", "term", "value"),
    [
        (BIG, BIG, 5),
        ({"and": [ORDER, BIG]}, BIG, 5),
        ({"and": [{"and": [ORDER]}, {"and": [ORDER, BIG]}]}, BIG, 5),
        ({"or": [{"and": [ORDER, BIG]}]}, BIG, 5),
        ({"or": [BIG, BIG]}, {"or": [BIG, BIG]}, {"record.total": 5}),
        ({"not": ORDER}, {"not": ORDER}, {"kind": "order"}),
        ("kind == 'order' && record.total > 9", "record.total > 9", {"record.total": 5}),
        ("kind == 'order' && record.absent > 9", "record.absent > 9", {"record.absent": None}),
        ("1 > 2", "1 > 2", {}),
        (
            "record.note == kind",
            "record.note == kind",
            {"kind": "order", "record.note": f"{'x' * MAX_TEXT}…"},
        ),
    ],
)
def test_the_first_term_that_does_not_hold(predicate: object, term: object, value: object) -> None:
    assert failed_term(predicate, holds, VARIABLES) == {"term": term, "value": value}


def test_a_long_term_is_cut() -> None:
    text = f"kind == '{'y' * MAX_TEXT}'"
    assert failed_term(text, holds, VARIABLES)["term"] == f"{text[:500]}…"
    exact = f"kind == '{'y' * (500 - 10)}'"
    assert len(exact) == 500
    assert failed_term(exact, holds, VARIABLES)["term"] == exact


def test_the_value_of_a_secret_is_not_kept() -> None:
    variables: dict[str, Any] = {"trigger": {"body": {"token": "hunter2", "total": 1}}}
    said = failed_term("trigger.body.token == 'x' ", lambda _: False, variables)
    assert said["value"] == {"trigger.body.token": "[redacted]"}
    tree = {"field": "trigger.body.token", "op": "eq", "value": "x"}
    assert failed_term(tree, lambda _: False, variables)["value"] == "[redacted]"
    whole = failed_term("size(trigger.body) > 9", lambda _: False, variables)
    assert whole["value"] == {"trigger.body": {"token": "[redacted]", "total": 1}}

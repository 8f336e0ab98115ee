"""CEL: results as JSON, errors as ExpressionError, budgets that hold."""

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from models.core.expressions.rules.expressions import (
    MAX_LENGTH,
    ExpressionError,
    compile_expression,
    saved_expression,
)
from runtime.processes import bounded_processes

DATA = {
    "trigger": {"n": 2, "text": "Abc", "list": [1, 2, 3], "none": None, "x y": 1.5},
    "nodes": {"q": {"records": [{"price": 3}, {"price": 4}]}, "my-node": {"ok": True}},
    "run": {"id": "r1"},
}


def evaluate(text: str, **variables: Any) -> Any:
    return saved_expression(text).evaluate(DATA | variables)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1 + 1", 2),
        ("1u", 1),
        ("double(trigger.n) * 1.5", 3.0),
        ("trigger.n == 2.0", True),
        ("trigger.text.lowerAscii()", "abc"),
        ("math.greatest(1, trigger.n)", 2),
        ("trigger.?missing.orValue(7)", 7),
        ("has(trigger.missing)", False),
        ("trigger.none == null", True),
        ("trigger['x y']", 1.5),
        ("nodes.q.records.map(r, r.price)", [3, 4]),
        ("nodes['my-node'].ok && run.id == 'r1'", True),
        ("{'a': [1, null], 2: 3, true: 4}", {"a": [1, None], "2": 3, "true": 4}),
        ("timestamp('2026-01-31T09:00:00.5Z')", "2026-01-31T09:00:00.500Z"),
        ("timestamp('0001-01-01T00:00:00Z')", "0001-01-01T00:00:00.000Z"),
        ("duration('90s')", 90),
        ("duration('1.5s')", 1.5),
        ("b'abc'", "YWJj"),
        ("item == null && index == null && vars == null && record == null", True),
        ("'x'.matches('^(a+)+$')", False),
    ],
)
def test_a_result_is_plain_json(text: str, result: object) -> None:
    value = evaluate(text)
    assert value == result
    assert type(value) is type(result)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 +", "line 1, column 4"),
        ("true &&\n unknown", "line 2, column 2: undeclared reference"),
        ("''.__class__", "select"),
        ("now()", "undeclared reference"),
        ("node.ok.decision", "reference to 'node.ok.decision'; known: nodes, "),
        ("trigger.n >", "at line 1, column 12: unexpected end"),
        ("(1", "missing ')' at the end"),
        ("1 == ]", "column 6: unexpected ']'"),
        ("trigger.n trigger.n", "unexpected 'trigger'"),
        ("lower(trigger.text)", "reference to 'lower'; known: lowerAscii, "),
        ("trigger.text.upper()", "reference to 'upper'; known: upperAscii, "),
        ("true ? 1 : 'a'", "no matching overload"),
        (" \n", "empty"),
        ("a" * (MAX_LENGTH + 1), "at most 4000"),
        ("(" * 1_000 + "1" + ")" * 1_000, "recursion"),
        ("[" * 1_900 + "]" * 1_900, "recursion"),
        ("1" + " + 1" * 900, "recursion"),
        ("'\\ud800'", "Unicode"),
        ("\x00", "compile"),
    ],
)
def test_a_bad_text_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as refusal:
        compile_expression(text)
    assert reason in str(refusal.value)
    assert len(str(refusal.value)) < 500
    assert refusal.value.code == "binding_error"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("trigger.missing", "missing not found in trigger"),
        ("trigger.__class__", "__class__ not found in trigger"),
        ("trigger.list[7]", "Index error"),
        ("item.x", "SELECT"),
        ("1 / 0", "divide by zero"),
        ("9223372036854775807 + trigger.n", "overflow"),
        ("trigger.n + 1.5", "overload"),
        ("int(trigger.text)", "convert"),
        ("trigger.?n", "optional"),
        ("[optional.of(1)]", "optional"),
        ("double('NaN')", "JSON"),
        ("1.0 / 0.0", "JSON"),
        ("{'a': [1.0 / 0.0]}", "JSON"),
        ("type(1)", "type"),
        ("'\\u0000'", "NUL"),
        ("{'\\u0000': 1}", "NUL"),
        ("trigger.list.map(x, 1 / 0)", "divide"),
    ],
)
def test_a_failed_evaluation_is_an_expression_error(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        evaluate(text)


def test_values_that_cel_cannot_read_are_converted_first() -> None:
    some_id = uuid.UUID(int=7)
    read = evaluate(
        "[trigger.at, trigger.cost, trigger.id, trigger.pair, trigger.wait, trigger.big > 1.0]",
        trigger={
            "at": datetime(2026, 1, 1, tzinfo=UTC),
            "cost": Decimal("1.5"),
            "id": some_id,
            "pair": (1, 2),
            "wait": timedelta(seconds=2),
            "big": 10**24,
        },
    )
    assert read == ["2026-01-01T00:00:00.000Z", 1.5, str(some_id), [1, 2], 2, True]


@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["plus", "minus"])
def test_an_absurd_number_does_not_break_the_others(value: int) -> None:
    assert evaluate("trigger.n", trigger={"n": 1, "huge": value}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "trigger.all(x, trigger.all(y, true))",
        "trigger.map(x, trigger.map(y, trigger.map(z, 1)))",
        "trigger.exists(x, trigger.exists(y, false))",
    ],
)
def test_the_budget_of_iterations_holds(text: str) -> None:
    with pytest.raises(ExpressionError, match="budget"):
        evaluate(text, trigger=list(range(150)))


@pytest.mark.long
@pytest.mark.parametrize("part", ["x" * 10**5, [1] * 10**5])
def test_a_result_that_is_too_large_is_refused(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_processes, "SECONDS", 60.0)  # Its size is refused, not its time.
    with pytest.raises(ExpressionError, match="too large"):
        evaluate("trigger.list.map(x, trigger.part)", trigger={"list": [0] * 90, "part": part})


def test_data_nested_too_deep_is_refused() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(ExpressionError, match="deeper"):
        evaluate("trigger == null", trigger=deep)
    with pytest.raises(ExpressionError, match="not valid JSON"):
        evaluate("trigger == null", trigger=object())


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("1 + 1", set()),
        ("nodes.a.x + nodes.b", {"a", "b"}),
        ("nodes['a b'].x", {"a b"}),
        ('nodes["a-b"]', {"a-b"}),
        ("nodes.?a.?b", {"a"}),
        ("nodes[?'c']", {"c"}),
        ("nodes // why not\n . a", {"a"}),
        (".nodes.a", {"a"}),
        ("1 in .nodes.a", {"a"}),
        ("trigger.nodes.a", set()),
        ("trigger.?nodes.a", set()),
        ("trigger['nodes'].a", set()),
        ("has(nodes.a.b) ? nodes.c : null", {"a", "c"}),
        ("'nodes.z' == nodes.y", {"y"}),
        (r"'\'nodes.z' == nodes.y", {"y"}),
        (r"r'\d' == nodes.y", {"y"}),
        ("'''nodes.z ' ''' == nodes.y", {"y"}),
        ("trigger.list.exists(n, n == nodes.p)", {"p"}),
        ("nodes", None),
        ("size(nodes)", None),
        ("nodes.size()", None),
        ("nodes[trigger.text]", None),
        ("nodes['a' + 'b']", None),
        (r"nodes['\x61']", None),
        ("nodes.map(k, nodes[k])", None),
        ("[nodes][0].a", None),
    ],
)
def test_the_nodes_an_expression_reads_are_known(text: str, nodes: set[str] | None) -> None:
    assert compile_expression(text).reads("nodes") == nodes


@pytest.mark.parametrize(
    ("text", "decides"), [("true", True), ("trigger.x", True), ("1", False), ("'a'", False)]
)
def test_an_expression_that_can_decide_is_recognized(text: str, decides: bool) -> None:
    assert compile_expression(text).decides is decides


def test_a_missing_key_is_reported_with_the_present_keys() -> None:
    data = {"trigger": {"Total": "a secret", "x": 1}, "nodes": {"ok": {"decision": "approved"}}}
    for text, there in (
        ("trigger.total > 1.0", "total not found in trigger; known: Total, x"),
        ("nodes.ok.by == 'a'", "by not found in nodes.ok; known: decision"),
    ):
        with pytest.raises(ExpressionError) as refusal:
            compile_expression(text).evaluate(data)
        assert refusal.value.message.endswith(there)
        assert refusal.value.code == "binding_error"
        assert "secret" not in refusal.value.message


def test_the_message_about_missing_keys_is_bounded() -> None:
    many = {f"{'k' * 200}{at}": at for at in range(5_000)}
    with pytest.raises(ExpressionError) as refusal:
        compile_expression("trigger.a == trigger.b && trigger.c == 1").evaluate({"trigger": many})
    assert len(refusal.value.message) < 4_000


def test_nodes_that_are_not_loaded_are_not_listed() -> None:
    with pytest.raises(ExpressionError) as refusal:
        compile_expression("nodes.later.x").evaluate({"nodes": {}})
    assert "known" not in refusal.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('trigger.day + duration("1mo")', 'duration("1mo") always fails: enter a duration'),
        ('timestamp("nonsense")', 'timestamp("nonsense") always fails: enter a timestamp'),
        ('trigger.day > timestamp("2026-01-01")', "always fails"),
        ('int("x") + trigger.n', 'int("x") always fails: cannot convert string to int'),
        ('double("1,5")', "always fails"),
        ('bool("maybe")', "always fails"),
        ("uint(-1)", "always fails"),
        ("1 / 0", "The expression divides by zero."),
        ("1.0 / 0.0", "The expression divides by zero."),
        ("trigger.n / 0", "The expression divides by zero."),
        ("trigger.n % (2 - 2)", "The expression divides by zero."),
        ("[1, 2].map(x, x / 0)", "The expression divides by zero."),
        ("trigger.n / 0 > 1 ? 1 : 2", "The expression divides by zero."),
        ("(trigger.n > 1 ? 1 : 2) / 0", "The expression divides by zero."),
        ("[1][5]", "A part of the expression always fails: Index error"),
        ('{"a": 1}.b', "A part of the expression always fails: Key not found"),
        ("9223372036854775807 + 1", "always fails"),
        ('"abc".charAt(10) == trigger.text', "always fails"),
        ('trigger.text.matches("[")', 'matches("[") always fails: invalid regular expression'),
        ('trigger.list.exists(x, string(x).matches("("))', 'matches("(") always fails'),
        ('timestamp(trigger.text).getHours("Europe/Atlantis")', "Invalid timezone"),
        ('"%y".format([trigger.n])', "unrecognized formatting clause"),
        ('"%s of %s".format([trigger.n])', "the list is shorter than the format"),
        ('trigger.list.map(x, int("y"))', 'int("y") always fails'),
        ('{"a": [duration("1mo")], "b": trigger.n}', 'duration("1mo") always fails'),
        # In a branch, too: whenever it is evaluated, it fails.
        ('trigger.n > 1 ? duration("1mo") : duration("1h")', 'duration("1mo") always fails'),
        ("trigger.n > 1 || [1][5] == 1", "always fails"),
        ('coalesce(trigger.x, duration("1mo"))', 'duration("1mo") always fails'),
    ],
)
def test_a_constant_that_always_fails_is_refused(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as refusal:
        compile_expression(text)
    assert said in refusal.value.message
    # What earlier rules accepted still runs as far as it can.
    saved_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        'false ? duration("1mo") : duration("1h")',
        "true || 1 / 0 > 1",
        # A branch may end with an error on purpose.
        "trigger.country == 'US' ? 1 / 0 : 1",
        "trigger.n > 0 ? trigger.n : trigger.m > 0 ? 1 % 0 : 2",
        "trigger.n > 0 || trigger.n / 0 > 1",
        'has({"a": 1}.b)',
        '{"a": 1}.?b.orValue(2)',
        "optional.none().or(trigger.?x).orValue(1)",
        "math.isInf(1.0 / 0.0)",
        "trigger.n / trigger.m",
        "trigger.n / 2",
        "0 / 5",
        "dyn(null) == null",
        "trigger.list.map(x, x / 2)",
        "trigger.list.exists(trigger, trigger.zz == 1)",
        "trigger.text.matches(trigger.pattern)",
        'trigger.text.matches("^[a-z]+é$")',
        'timestamp(trigger.text).getHours("+01:00")',
        'timestamp(trigger.text).getDate("Europe/Berlin")',
        '"100%% of %s, %.2f, %X".format([trigger.n, 1.0, 255])',
        '"%s".format(trigger.list)',
        "trigger.x.optMap(y, y * 2).orValue(0)",
        "[1, 2][trigger.n]",
        'trigger.day + duration("36h")',
        "type(trigger.n) == int",
        "{}.size() == 0 || [].size() == 0",
    ],
)
def test_a_constant_that_can_have_a_value_is_accepted(text: str) -> None:
    compile_expression(text)

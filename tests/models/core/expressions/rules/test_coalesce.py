"""`coalesce` gives the first value that is there, and says what a call of it cannot be."""

import pytest

from models.core.expressions.rules.cel_text import MOST_COALESCE_CALLS, MOST_COALESCED
from models.core.expressions.rules.expressions import ExpressionError, compile_expression

LONG = "trigger.a.b.c.d.e.f"
TRIGGER = {"none": None, "zero": 0, "no": False, "empty": "", "list": [1, 2], "at": 1, "text": "t"}


def evaluate(text: str) -> object:
    return compile_expression(text).evaluate({"trigger": TRIGGER})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("coalesce(trigger.missing)", None),
        ("coalesce(trigger.none, 1)", 1),
        (f"coalesce({'null, ' * (MOST_COALESCED - 1)} 1)", 1),
        ("coalesce(trigger.missing, 'x')", "x"),
        ("coalesce(trigger.zero, 1)", 0),
        ("coalesce(trigger.no, true)", False),
        ("coalesce(trigger.empty, 'x')", ""),
        ("coalesce(trigger.missing.b['c'], trigger.none.d.e, 3)", 3),
        ("coalesce(trigger.list[9], trigger.list[trigger.at])", 2),
        ("coalesce(trigger.?missing, trigger[?'missing'], 4)", 4),
        ("coalesce(trigger.`missing`, 5)", 5),
        ("coalesce(item.name, item, 6)", 6),
        ("coalesce(trigger.none, null)", None),
        ("coalesce(trigger.list, {}).size()", 2),
        ("coalesce(1, 1 / 0)", 1),
        ("2 * coalesce(trigger.none, 1) + 1", 3),
        ("coalesce(coalesce(trigger.none, trigger.missing), math.greatest(7, 2))", 7),
        ("[{'k': 1}, {}].map(value, coalesce(value.k, trigger.zero))", [1, 0]),
        ("'coalesce(1, 2)' // coalesce(", "coalesce(1, 2)"),
        ("coalesce( // first\n trigger . none , // then\n {'a': [1, 2]} ).a[1]", 2),
    ],
)
def test_the_first_value_that_is_there_and_not_null(text: str, result: object) -> None:
    value = evaluate(text)
    assert (value, type(value)) == (result, type(result))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("coalesce()", "line 1, column 9"),
        (f"coalesce({'1, ' * MOST_COALESCED} 1)", "line 1, column 9"),
        ("trigger.coalesce(1, 2)", "column 17"),
        ("coalesce(trigger.none,\n unknown)", "line 2, column 2: undeclared reference"),
        ("coalesce(trigger.none, 1 + 'a')", "no matching overload"),
        (
            "+".join(["coalesce(1, 2)"] * (MOST_COALESCE_CALLS + 1)),
            f"more than {MOST_COALESCE_CALLS} times",
        ),
        (f"[{','.join([f'coalesce({LONG}, {LONG}, {LONG}, {LONG})'] * 20)}]", "too long paths"),
        ("coalesce(" * 12 + "1" + ", 2)" * 12, "recursion"),
    ],
)
def test_a_call_that_cannot_be_is_refused_where_it_stands(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        compile_expression(text)


def test_a_path_through_a_text_is_an_error_as_elsewhere() -> None:
    with pytest.raises(ExpressionError, match="overload"):
        evaluate("coalesce(trigger.text.length, 1)")


def test_the_paths_and_type_of_a_call_are_known() -> None:
    expression = compile_expression("coalesce(nodes.a.x, nodes['b'].y, true)")
    assert expression.reads("nodes") == frozenset({"a", "b"})
    assert expression.decides

"""What is provably small, by the tree of the text and the extent of the data."""

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.core.expressions.rules.checks import extent_of
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.programs import Program, Type, environment
from tests.support.attacks import GROWING
from tests.support.exploring import examples

ENVIRONMENT = environment({"trigger": Type.ANY, "nodes": Type.ANY})
RECORD = {"id": "r1", "data": {"price": 5, "name": "Car", "tags": ["a", "b"]}}
SMALL = {"trigger": {"n": 5, "text": "Some text.", "record": RECORD}}


@pytest.mark.parametrize(
    "text",
    [
        "trigger.n > 3",
        "trigger.record.data.price * 2 + trigger.n",
        "'Dear ' + trigger.text + ', ' + string(trigger.n)",
        "trigger.text.lowerAscii().replace(' ', '-')",
        "trigger.text.contains('x') || trigger.text.matches('^[a-z]+$')",
        "coalesce(trigger.a, trigger.b.c, 'none')",
        "trigger.record.data.tags.exists(tag, tag == 'a')",
        "trigger.record.data.tags.filter(tag, tag != 'a').map(tag, {'tag': tag})",
        "trigger.?missing.orValue('x')",
    ],
)
def test_usual_expressions_are_small(text: str) -> None:
    assert Program(ENVIRONMENT, text).is_small(SMALL)


@pytest.mark.parametrize("text", GROWING.values(), ids=GROWING.keys())
def test_an_expression_that_grows_with_every_call_is_not_small(text: str) -> None:
    assert not Program(ENVIRONMENT, text).is_small({})


@pytest.mark.parametrize(
    ("text", "few", "many"),
    [
        ("nodes.map(x, x)", 200, 300),
        ("nodes.map(x, nodes.size())", 10, 300),
        ("nodes.map(x, [x, x]).map(x, [x, x])", 10, 1_000),
        ("nodes.filter(x, x > 1)", 50, 5_000),
        ("nodes.filter(x, x > 1).map(y, y)", 100, 200),
        ("trigger in nodes", 1_000, 100_000),
        ("nodes", 1_000, 100_000),
    ],
)
def test_the_extent_of_the_data_decides(text: str, few: int, many: int) -> None:
    program = Program(ENVIRONMENT, text)
    assert program.is_small({"nodes": [1] * few, "trigger": 1})
    assert not program.is_small({"nodes": [1] * many, "trigger": 1})


@pytest.mark.parametrize(
    ("few", "many"),
    [
        ("nodes.map(x, x.a)", f"nodes.map(x, x{'.a' * 28})"),
        ("nodes.map(x, 'a')", f"nodes.map(x, '{'a' * 2_000}')"),
        ("trigger.split(',')", f"trigger.split('{'a' * 400}')"),
        ("trigger.split(',')", "(trigger + trigger).split(',')"),
    ],
    ids=["selections", "size", "separator", "text"],
)
def test_the_steps_of_an_expression_decide_for_the_same_data(few: str, many: str) -> None:
    data = {"nodes": [1] * 130, "trigger": "a" * 1_000}
    assert Program(ENVIRONMENT, few).is_small(data)
    assert not Program(ENVIRONMENT, many).is_small(data)


def test_a_list_beside_a_long_text_is_no_longer_for_it() -> None:
    program = Program(ENVIRONMENT, "nodes.few.map(x, x)")
    assert program.is_small({"nodes": {"few": [1, 2], "text": "a" * 10_000}})
    assert not program.is_small({"nodes": {"few": [1] * 500, "text": ""}})


@pytest.mark.parametrize(
    "text", ["nodes.map(x, nodes.map(y, y))", "[1].exists(x, [1].exists(y, x == y))"]
)
def test_a_macro_inside_another_is_not_small(text: str) -> None:
    assert not Program(ENVIRONMENT, text).is_small({"nodes": [1]})


def test_long_texts_count_by_their_characters() -> None:
    program = Program(ENVIRONMENT, "trigger.replace('a', 'bbbbbbbbbbbbbbbb')")
    assert program.is_small({"trigger": "a" * 1_000})
    assert not program.is_small({"trigger": "a" * 100_000})


@pytest.mark.parametrize("text", ["'%s'.format([trigger])", "trigger.matches(trigger)"])
def test_an_expression_without_a_known_bound_is_not_small(text: str) -> None:
    assert not Program(ENVIRONMENT, text).is_small({"trigger": "a"})


def test_an_extent_is_known_up_to_a_power_of_two() -> None:
    assert extent_of({"a": [1, 2, 3]}) == extent_of({"b": [1, 2, 3]})
    assert extent_of([0] * 10**6) is None


def _lists(depth: int) -> st.SearchStrategy[str]:
    """Texts that give lists, with a limited number of steps."""
    if not depth:
        return st.sampled_from(["nodes", "y", "['a', 'b']"])
    lists, words = _lists(depth - 1), _words(depth - 1)
    inner = lists | words
    return st.one_of(
        lists,
        st.builds("{0}.map(x, {1})".format, lists, inner),
        st.builds("{0}.map(y, {1})".format, lists, inner),
        st.builds("{0}.filter(x, {1} == x)".format, lists, inner),
        st.builds("({0} + {1})".format, lists, lists),
        st.builds("({0} == {1} ? {0} : {1})".format, lists, lists),
        st.builds("{0}.split('')".format, words),
        st.builds("[{0}, {1}]".format, inner, inner),
    )


def _words(depth: int) -> st.SearchStrategy[str]:
    """Texts that give text, with a limited number of steps."""
    if not depth:
        return st.sampled_from(["trigger.text", "nodes[0]", "x", "'ab'"])
    lists, words = _lists(depth - 1), _words(depth - 1)
    return st.one_of(
        words,
        st.builds("({0} + {1})".format, words, words),
        st.builds("{0}.replace('a', {1})".format, words, words),
        st.builds("{0}.join({1})".format, lists, words),
        st.builds("string({0}.exists(x, x == {1}))".format, lists, words),
        st.builds("string({0}.size())".format, lists),
        st.builds("coalesce({0}, {1})".format, words, words),
    )


TEXTS = st.one_of(_lists(3), _words(3), st.builds("{{'k': {0}}}".format, _lists(2)))


@settings(max_examples=examples(100, explored=15_000), suppress_health_check=[HealthCheck.too_slow])
@given(
    text=TEXTS,
    nodes=st.sampled_from([["ab"], ["ab"] * 20, ["ab"] * 400, [["ab"] * 20] * 20]),
    words=st.sampled_from(["a" * 3, "a" * 1_000, "a" * 50_000]),
)
def test_a_small_expression_is_evaluated_soon(text: str, nodes: Any, words: str) -> None:
    dynamic = environment(dict.fromkeys(("trigger", "nodes", "x", "y"), Type.ANY))
    data = {"trigger": {"text": words}, "nodes": nodes, "x": "a", "y": ["a"]}
    try:
        program = Program(dynamic, text)
    except ExpressionError:
        return
    if not program.is_small(data):
        return
    began = time.thread_time()
    with suppress(ExpressionError):
        program.run(data)
    # The budget is about 5 ms, and a failed one is evaluated twice.
    assert time.thread_time() - began < 0.1

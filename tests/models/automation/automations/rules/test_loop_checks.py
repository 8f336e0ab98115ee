"""What keeps loops from compiling: bodies that leak, are missing, or lie too deep."""

from itertools import pairwise
from typing import Any

import pytest

from tests.models.automation.automations.rules.test_compiler import edge, issues, node

Json = dict[str, Any]


def each(node_id: str, **config: Any) -> Json:
    return node(node_id, "for_each", items=[1], **config)


LOOP = [each("loop"), node("a"), node("b"), node("end")]
WAYS = [edge("loop", "a", "item"), edge("a", "b"), edge("loop", "end", "done")]


def test_a_body_that_keeps_to_itself_compiles() -> None:
    assert issues(LOOP, WAYS) == []


@pytest.mark.parametrize(
    ("more", "at", "words"),
    [
        ([edge("b", "end")], "b", 'An edge to "end" leaves the body of the loop "loop"'),
        ([edge("b", "end", "failure")], "b", 'An edge to "end" leaves the body'),
        ([edge("loop", "b", "done")], "a", 'An edge to "b" leaves the body'),
        ([edge("loop", "end", "item")], "loop", 'Its item edge leads to "end"'),
        ([edge("loop", "a", "failure")], "loop", 'Its item edge leads to "a"'),
    ],
)
def test_no_edge_leads_out_of_a_loop_body(more: list[Json], at: str, words: str) -> None:
    found = issues(LOOP, [*WAYS, *more])
    assert any(place == at and words in message for place, message in found), found


def test_only_item_edges_lead_into_a_loop_body() -> None:
    way = 'An edge from "other" leads into the body of the loop "loop" from outside;'
    found = issues([*LOOP, node("other")], [*WAYS, edge("other", "b")])
    assert found == [("b", f"{way} only its item edge may.")]


def test_a_run_does_not_begin_in_a_body() -> None:
    found = issues(LOOP, WAYS, entryNodeIds=["loop", "b"])
    assert found == [("b", 'A run cannot begin in the body of the loop "loop".')]


def test_item_edges_of_an_inner_loop_stay_inside_it() -> None:
    nodes = [each("outer"), each("inner"), node("x"), node("y")]
    ways = [edge("outer", "inner", "item"), edge("inner", "x", "item"), edge("inner", "y", "done")]
    assert issues(nodes, ways) == []
    found = issues(nodes, [*ways, edge("outer", "x", "item")])
    assert [place for place, _ in found] == ["x"]
    found = issues(nodes, [*ways, edge("x", "y")])
    assert [place for place, _ in found] == ["x"]


def test_a_loop_has_a_body() -> None:
    found = issues([each("loop"), node("end")], [edge("loop", "end", "done")])
    assert found == [("loop", "The loop needs an edge with the outcome item.")]


@pytest.mark.parametrize(("depth", "wrong"), [(5, []), (6, ["l5"])])
def test_loops_nest_five_deep(depth: int, wrong: list[str]) -> None:
    loops = [f"l{level}" for level in range(depth)]
    nodes = [*(each(loop) for loop in loops), node("x")]
    ways = [edge(a, b, "item") for a, b in pairwise([*loops, "x"])]
    assert [place for place, _ in issues(nodes, ways)] == wrong


@pytest.mark.parametrize(
    ("ways", "named"),
    [([("a", "b")], None), ([], '"a", "b"'), ([("a", "b", "failure")], None)],
    ids=["one after the other", "beside one another", "after a failure"],
)
def test_collecting_needs_a_body_with_one_last_node(
    ways: list[tuple[str, ...]], named: str | None
) -> None:
    begin = [edge("loop", "a", "item")] + ([] if ways else [edge("loop", "b", "item")])
    nodes = [each("loop", collect=True), node("a"), node("b")]
    words = "Collects outputs, but its body ends with several nodes: choose one of"
    found = issues(nodes, begin + [edge(*way) for way in ways])
    assert found == ([] if named is None else [("loop", f"{words} {named}.")])


@pytest.mark.parametrize("collect", ["end", "none", "loop", "deep"])
def test_a_loop_collects_only_from_its_own_body(collect: str) -> None:
    nodes = [each("loop", collect=collect), node("a"), each("inner"), node("deep"), node("end")]
    ways = [edge("loop", "a", "item"), edge("a", "inner"), edge("inner", "deep", "item")]
    found = issues(nodes, [*ways, edge("loop", "end", "done")])
    words = f'Collects outputs of "{collect}", which is not a node of its body.'
    assert found == [("loop", words)]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"while": "index <"}, "while: "),
        ({"while": "1 + 1"}, "must return true or false"),
        ({"while": {"type": "expression", "value": "true"}}, "Must be CEL text"),
        ({}, "needs while or maxIterations"),
        ({"collect": "a"}, "needs while or maxIterations"),
        ({"while": "true", "maxIterations": 1_001}, "maxIterations"),
        ({"while": "true", "delaySeconds": -1}, "delaySeconds"),
        ({"while": "nodes.none.v", "collect": "a"}, '"none", which does not exist'),
        ({"while": "true", "collect": {"type": "trigger", "value": "c"}}, "collect"),
    ],
)
def test_a_wrong_repeat_says_what_is_wrong(config: Json, words: str) -> None:
    found = issues([node("loop", "repeat", **config), node("a")], [edge("loop", "a", "item")])
    assert any(place == "loop" and words in message for place, message in found), found

"""Nodes of two runs side by side, and what is not the same about them."""

from dataclasses import dataclass, replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.automation.run_comparisons import Aspect, Pair, align, aspects, in_order, place_of

PLACES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "loop:0", "loop:1"])),
    unique=True,
    max_size=12,
)


@dataclass
class Node:
    """A node as it was executed."""

    node_id: str
    scope_key: str = ""
    node_kind: str = "transform"
    status: str = "succeeded"
    outcome: str | None = "success"
    case_key: str | None = None
    attempt: int = 1
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    reused: bool = False
    input_digest: int | None = 1
    output_digest: int | None = 2


def nodes(*places: tuple[str, str]) -> list[Node]:
    return [Node(node_id, scope) for node_id, scope in places]


def order(pairs: list[Pair]) -> str:
    return " ".join(node_id for node_id, _ in (pair.place for pair in pairs))


@given(PLACES, PLACES)
def test_every_node_of_both_runs_is_there_once_in_the_order_of_its_run(
    run: list[tuple[str, str]], reference: list[tuple[str, str]]
) -> None:
    pairs = align(nodes(*run), nodes(*reference))
    assert [place_of(pair.node) for pair in pairs if pair.node] == run
    assert {place_of(pair.counterpart) for pair in pairs if pair.counterpart} == set(reference)
    assert len(pairs) == len({*run, *reference})
    for pair in pairs:
        if pair.node and pair.counterpart:
            assert place_of(pair.node) == place_of(pair.counterpart)


@given(PLACES)
def test_a_run_differs_in_nothing_from_itself(run: list[tuple[str, str]]) -> None:
    for pair in align(nodes(*run), nodes(*run)):
        assert aspects(pair, run_is_whole=True, reference_is_whole=True) == []


def test_a_node_of_the_reference_stands_behind_the_one_that_it_followed() -> None:
    def named(text: str) -> list[Node]:
        return nodes(*((node_id, "") for node_id in text))

    assert order(align(named("acd"), named("abcx"))) == "a b c x d"
    assert order(align(named("ad"), named("xay"))) == "x a y d"
    assert order(align([], named("ab"))) == "a b"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": "failed"}, [Aspect.STATUS]),
        ({"outcome": "false"}, [Aspect.BRANCH]),
        ({"case_key": "large"}, [Aspect.BRANCH]),
        ({"input_digest": 3}, [Aspect.INPUT]),
        ({"output_digest": None}, [Aspect.OUTPUT]),
        ({"error": "No."}, [Aspect.ERROR]),
        ({"attempt": 3}, []),
        ({"status": "skipped", "output_digest": None, "input_digest": None}, [Aspect.STATUS]),
        ({"status": "running", "output_digest": None}, []),
        ({"status": "running", "output_digest": None, "input_digest": 3}, [Aspect.INPUT]),
        ({"status": "skipped", "reused": True, "output_digest": None}, []),
    ],
)
def test_each_aspect_is_compared(changes: dict[str, object], expected: list[Aspect]) -> None:
    node = Node("a")
    for pair in (
        Pair(node, replace(node, **changes)),  # type: ignore[arg-type]
        Pair(replace(node, **changes), node),  # type: ignore[arg-type]
    ):
        assert aspects(pair, run_is_whole=True, reference_is_whole=True) == expected


def test_a_node_may_still_follow_in_a_run_that_continues() -> None:
    missing, extra = Pair(None, Node("a")), Pair(Node("a"), None)
    assert aspects(missing, run_is_whole=True, reference_is_whole=False) == [Aspect.PRESENCE]
    assert aspects(missing, run_is_whole=False, reference_is_whole=True) == []
    assert aspects(extra, run_is_whole=False, reference_is_whole=True) == [Aspect.PRESENCE]
    assert aspects(extra, run_is_whole=True, reference_is_whole=False) == []


GRAPH = {
    "nodes": [{"id": name} for name in ("z", "y", "each", "b", "a", "last")],
    "edges": [
        {"from": "z", "to": "y"},
        {"from": "y", "to": "each"},
        {"from": "each", "to": "b", "outcome": "item"},
        {"from": "b", "to": "a"},
        {"from": "each", "to": "last", "outcome": "done"},
    ],
}


def test_the_order_is_that_of_the_graph_iteration_by_iteration() -> None:
    places = [
        ("last", ""), ("a", "each:10"), ("a", "each:2"), ("b", "each:10"), ("b", "each:2"),
        ("each", ""), ("y", ""), ("z", ""),
    ]  # fmt: skip
    ordered = [place_of(node) for node in in_order(nodes(*places), GRAPH)]
    assert ordered == [
        ("z", ""), ("y", ""), ("each", ""), ("b", "each:2"), ("a", "each:2"),
        ("b", "each:10"), ("a", "each:10"), ("last", ""),
    ]  # fmt: skip


def test_nodes_that_the_graph_does_not_have_come_last() -> None:
    ordered = in_order(nodes(("gone", ""), ("x", "gone:1"), ("z", "")), GRAPH)
    assert [node.node_id for node in ordered] == ["z", "gone", "x"]
    assert in_order([], {}) == []

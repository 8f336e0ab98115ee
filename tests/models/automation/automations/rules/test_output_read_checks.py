"""What would be null in every run: outputs of later nodes, and of other iterations."""

from typing import Any

import pytest

from tests.models.automation.automations.rules.test_compiler import bind, edge, issues, node

Json = dict[str, Any]

LATER = 'Reads the node "b", which has not run by then.'


def reading(node_id: str, *bindings: Json) -> Json:
    return node(node_id, output={f"v{index}": one for index, one in enumerate(bindings)})


@pytest.mark.parametrize(
    "reader",
    [
        reading("a", bind("node", "b.x")),
        reading("a", bind("expression", "nodes.b.x + 1")),
        reading("a", bind("template", "so {{ nodes['b'].x }}")),
        node("a", "condition", expression="nodes.b.x == 1"),
        node("a", "condition", filter={"field": "nodes.b.x", "op": "eq", "value": 1}),
    ],
)
def test_a_later_node_has_nothing_to_read_yet(reader: Json) -> None:
    way = "true" if reader["kind"] == "condition" else "always"
    nodes, ways = [reader, node("m"), node("b")], [edge("a", "m", way), edge("m", "b")]
    assert issues(nodes, ways) == [("a", LATER)]


def test_a_node_has_no_output_of_its_own_to_read() -> None:
    own = "Reads its own output, which has not run by then."
    assert issues([reading("a", bind("node", "a.x"))]) == [("a", own)]


def test_earlier_nodes_and_those_beside_can_be_read() -> None:
    beside = [reading("a", bind("node", "b.x")), reading("b", bind("node", "a.x"))]
    assert issues(beside) == []
    after = [node("b"), reading("a", bind("node", "b.x"))]
    assert issues(after, [edge("b", "a")]) == []


def test_a_repeat_sees_what_its_last_iteration_computed() -> None:
    loop = node("loop", "repeat", maxIterations=3, **{"while": "nodes.b.n < 3"})
    nodes = [loop, reading("a", bind("node", "b.n")), node("b")]
    ways = [edge("loop", "a", "item"), edge("a", "b")]
    assert issues(nodes, ways) == []


def test_iterations_of_a_for_each_see_nothing_of_one_another() -> None:
    loop = node("loop", "for_each", items=[1, 2])
    nodes = [loop, reading("a", bind("node", "b.n")), node("b")]
    ways = [edge("loop", "a", "item"), edge("a", "b")]
    assert issues(nodes, ways) == [("a", LATER)]


@pytest.mark.parametrize("kind", ["for_each", "repeat"])
def test_outputs_of_a_loop_body_are_read_only_inside_the_loop(kind: str) -> None:
    config: Json = {"items": [1]} if kind == "for_each" else {"maxIterations": 2}
    nodes = [
        node("loop", kind, **config),
        node("b"),
        reading("after", bind("node", "b.n")),
        reading("beside", bind("node", "b.n")),
    ]
    ways = [edge("loop", "b", "item"), edge("loop", "after", "done")]
    hidden = 'Reads the node "b", whose outputs are seen only inside the loop "loop".'
    assert issues(nodes, ways) == [("after", hidden), ("beside", hidden)]


def test_the_body_of_an_inner_loop_sees_the_outer_one() -> None:
    nodes = [
        node("outer", "for_each", items=[1]),
        node("b"),
        node("inner", "for_each", items=[1]),
        reading("c", bind("node", "b.n")),
        reading("d", bind("node", "c.n")),
    ]
    ways = [
        edge("outer", "b", "item"),
        edge("b", "inner"),
        edge("inner", "c", "item"),
        edge("inner", "d", "done"),
    ]
    hidden = 'Reads the node "c", whose outputs are seen only inside the loop "inner".'
    assert issues(nodes, ways) == [("d", hidden)]


def test_an_item_can_come_from_a_run_from_the_node() -> None:
    assert issues([reading("a", bind("item", "name"), bind("expression", "index + 1"))]) == []

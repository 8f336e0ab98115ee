"""Differences of versions: none of equal ones, and the same in both directions."""

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.automation.automations.rules.graph.differences import (
    Change,
    GraphDifference,
    ValueDifference,
    difference,
    united,
)
from models.automation.automations.rules.graph.shapes import Graph

Json = dict[str, Any]

_VALUES = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(["", "a", "b"]))
_IDS = st.sampled_from("abcde")
_NODES = st.fixed_dictionaries(
    {
        "id": _IDS,
        "kind": st.sampled_from(["transform", "delay"]),
        "config": st.dictionaries(st.sampled_from(["x", "y"]), _VALUES),
        "position": st.fixed_dictionaries({"x": st.integers(0, 9), "y": st.integers(0, 9)}),
    },
    optional={"label": st.sampled_from(["One", "Two"]), "disabled": st.booleans()},
)
_EDGES = st.fixed_dictionaries(
    {"from": _IDS, "to": _IDS, "outcome": st.sampled_from(["always", "failure"])}
)
_TRIGGERS = st.dictionaries(st.sampled_from(["kind", "cron"]), _VALUES)
_GRAPHS = st.builds(
    lambda nodes, edges, on_error: {"nodes": nodes, "edges": edges, "onError": on_error},
    st.lists(_NODES, max_size=5, unique_by=lambda node: node["id"]),
    st.lists(_EDGES, max_size=6, unique_by=lambda edge: tuple(edge.values())),
    st.sampled_from(["stop", "continue"]),
)
_OPPOSITE = {
    Change.ADDED: Change.REMOVED,
    Change.REMOVED: Change.ADDED,
    Change.CHANGED: Change.CHANGED,
}


@given(_GRAPHS, _TRIGGERS)
def test_equal_versions_do_not_differ(graph: Json, trigger: Json) -> None:
    again = deepcopy(graph)
    for node in again["nodes"]:
        node["position"] = {"x": 1000, "y": 1000}
    again["nodes"].reverse()
    again["edges"].reverse()
    assert not difference(graph, again, trigger, dict(trigger))


@given(_GRAPHS, _GRAPHS, _TRIGGERS, _TRIGGERS)
def test_an_addition_is_a_removal_in_the_other_direction(
    before: Json, after: Json, old: Json, new: Json
) -> None:
    there = difference(before, after, old, new)
    back = difference(after, before, new, old)
    assert told(there) == {(*place, _OPPOSITE[change]) for *place, change in told(back)}
    assert changed_values(there) == {
        (place, key, new_text, old_text) for place, key, old_text, new_text in changed_values(back)
    }


@given(_GRAPHS, _GRAPHS)
def test_a_node_is_reported_exactly_when_it_is_not_in_both_graphs_alike(
    before: Json, after: Json
) -> None:
    old, new = ({node["id"]: node for node in graph["nodes"]} for graph in (before, after))
    ids = {one.id: one.change for one in difference(before, after).nodes}
    assert {node_id for node_id, change in ids.items() if change is Change.ADDED} == {*new} - {*old}
    assert {node_id for node_id, change in ids.items() if change is Change.REMOVED} == (
        {*old} - {*new}
    )
    for node_id in {*old} & {*new} - {*ids}:
        assert plainly(old[node_id]) == plainly(new[node_id])


@given(_GRAPHS, _GRAPHS)
def test_the_picture_of_both_has_every_node_and_edge_of_either(before: Json, after: Json) -> None:
    picture = united(before, after)
    for graph in (before, after):
        assert {node["id"] for node in graph["nodes"]} <= {node["id"] for node in picture["nodes"]}
        assert all(edge in picture["edges"] for edge in graph["edges"])
    assert len(picture["nodes"]) == len({node["id"] for node in before["nodes"] + after["nodes"]})


def test_the_changed_keys_of_a_config_are_reported() -> None:
    first = stored(nodes=[node("greet", text="Hello", times=1)])
    second = stored(nodes=[node("greet", text="Hello", times=True)])
    (changed,) = difference(first, second).nodes
    assert (changed.change, changed.values) == (
        Change.CHANGED,
        (ValueDifference("config.times", 1, True),),
    )


def test_an_edge_with_another_outcome_is_changed() -> None:
    nodes = [node("a"), node("b")]
    first = stored(nodes=nodes, edges=[{"from": "a", "to": "b"}])
    second = stored(nodes=nodes, edges=[{"from": "a", "to": "b", "outcome": "failure"}])
    (edge,) = difference(first, second).edges
    assert (edge.change, edge.before, edge.after) == (Change.CHANGED, ("always",), ("failure",))


def test_the_trigger_and_the_graph_as_a_whole_are_reported() -> None:
    first, second = stored(onError="stop"), stored(onError="continue")
    values = difference(first, second, {"kind": "manual"}, {"kind": "schedule"}).values
    assert values == (
        ValueDifference("trigger.kind", "manual", "schedule"),
        ValueDifference("onError", "stop", "continue"),
    )


def note(note_id: str, text: str, **more: Any) -> Json:
    return {"id": note_id, "text": text, "position": {"x": 0, "y": 0}, **more}


def test_notes_are_reported_by_what_they_say() -> None:
    first = stored(notes=[note("a", "Why\nBecause"), note("b", "Gone"), note("c", "Moved")])
    moved = note("c", "Moved", width=300) | {"position": {"x": 9, "y": 9}}
    second = stored(notes=[note("a", "Who", color="red"), moved, note("d", "x" * 61)])
    found = difference(first, second)
    assert [(one.id, one.label, one.change) for one in found.notes] == [
        ("a", "Who", Change.CHANGED),
        ("d", "x" * 59 + "…", Change.ADDED),
        ("b", "Gone", Change.REMOVED),
    ]
    assert found.notes[0].values == (
        ValueDifference("color", "yellow", "red"),
        ValueDifference("text", "Why\nBecause", "Who"),
    )
    assert (found.nodes, found.edges, found.values) == ((), (), ())
    assert difference(stored(), first)
    assert not difference(first, first)


def node(node_id: str, **config: Any) -> Json:
    return {"id": node_id, "kind": "transform", "config": config}


def stored(**graph: Any) -> Json:
    return Graph.model_validate(graph).to_json()


def plainly(one: Json) -> Json:
    """A node as it is compared: without its position, and with null as absent."""
    config = {key: value for key, value in one["config"].items() if value is not None}
    return {**{key: one[key] for key in one if key != "position"}, "config": config}


def told(found: GraphDifference) -> set[tuple[Any, ...]]:
    nodes = {(one.id, one.change) for one in found.nodes}
    return nodes | {(one.source, one.target, one.change) for one in found.edges}


def changed_values(found: GraphDifference) -> set[tuple[str, str, str, str]]:
    """Every value that differs, as text, since lists cannot stand in a set."""
    listed = [("", one) for one in found.values]
    listed += [(node.id, one) for node in found.nodes for one in node.values]
    return {(place, one.key, repr(one.before), repr(one.after)) for place, one in listed}


def test_a_node_is_named_by_its_label_or_by_its_id() -> None:
    before = stored(nodes=[node("a", text="x"), node("b", text="x") | {"label": "Second"}])
    after = stored(nodes=[node("a", text="y"), node("b", text="y") | {"label": "Second"}])
    found = difference(before, after)
    assert [(one.id, one.label) for one in found.nodes] == [("a", "a"), ("b", "Second")]

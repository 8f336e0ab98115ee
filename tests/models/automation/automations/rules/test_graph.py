"""The shape of a graph: what is refused at once, and what a draft may hold."""

import json
from typing import Any

import pydantic
import pytest

from models.automation.automations.rules.graph.shapes import Graph, Retry
from models.core.problems import place

NODE = {"id": "a", "kind": "transform", "config": {"output": {}}}

PAYLOAD = {"id": "p", "name": "n", "payload": {}}
NOTE = {"id": "n", "text": "Why", "position": {"x": 0, "y": -9.5}}


def errors(graph: Any) -> list[str]:
    try:
        Graph.model_validate(graph)
    except pydantic.ValidationError as error:
        return [place(part, graph) for part in error.errors(include_url=False)]
    return []


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("graph", "path"),
    [
        ([], ""),
        ({"nodes": {}}, "nodes"),
        ({"extra": 1}, "extra"),
        ({"nodes": [NODE | {"extra": 1}]}, "nodes.0.extra"),
        ({"nodes": [{"kind": "stop"}]}, "nodes.0.id"),
        ({"nodes": [{"id": "a"}]}, "nodes.0.kind"),
        ({"nodes": [{"id": "a", "kind": "teleport"}]}, "nodes.0.kind"),
        ({"nodes": [NODE] * 201}, "nodes"),
        ({"edges": [{"from": "a", "to": "b"}] * 501}, "edges"),
        ({"edges": [{"from": "a"}]}, "edges.0.to"),
        ({"edges": [{"from": "a", "to": "b", "outcome": "maybe"}]}, "edges.0.outcome"),
        ({"edges": [{"from": "a", "to": "b", "source": "a"}]}, "edges.0.source"),
        ({"nodes": [NODE | {"label": ""}]}, "nodes.0.label"),
        ({"nodes": [NODE | {"label": "x" * 201}]}, "nodes.0.label"),
        ({"nodes": [NODE | {"config": []}]}, "nodes.0.config"),
        ({"nodes": [NODE | {"config": _deep(65)}]}, "nodes.0.config"),
        ({"nodes": [NODE | {"config": _deep(100_000)}]}, "nodes.0.config"),
        ({"nodes": [NODE | {"input": {"x": 1}}]}, "nodes.0.input.x"),
        ({"nodes": [NODE | {"input": {"x": {"type": "?", "value": 1}}}]}, "nodes.0.input.x.type"),
        ({"nodes": [NODE | {"input": {"x": {"value": 1}}}]}, "nodes.0.input.x.type"),
        ({"nodes": [NODE | {"input": {"x": {"type": "literal"}}}]}, "nodes.0.input.x.value"),
        (
            {"nodes": [NODE | {"input": {"x": {"type": "trigger", "value": 5}}}]},
            "nodes.0.input.x.value",
        ),
        ({"nodes": [NODE | {"timeoutSeconds": 0}]}, "nodes.0.timeoutSeconds"),
        ({"nodes": [NODE | {"timeoutSeconds": "300"}]}, "nodes.0.timeoutSeconds"),
        ({"nodes": [NODE | {"timeoutSeconds": 86_401}]}, "nodes.0.timeoutSeconds"),
        ({"nodes": [NODE | {"disabled": "yes"}]}, "nodes.0.disabled"),
        ({"nodes": [NODE | {"position": {"x": float("inf"), "y": 0}}]}, "nodes.0.position.x"),
        ({"testPayloads": [PAYLOAD] * 21}, "testPayloads"),
        ({"testPayloads": [PAYLOAD | {"payload": []}]}, "testPayloads.0.payload"),
        ({"testPayloads": [PAYLOAD | {"payload": {"x": "ü" * 33_000}}]}, "testPayloads.0.payload"),
        ({"onError": "maybe"}, "onError"),
        ({"entryNodeIds": [1]}, "entryNodeIds.0"),
        ({"notes": [NOTE] * 101}, "notes"),
        ({"notes": [NOTE | {"text": "x" * 4_001}]}, "notes.0.text"),
        ({"notes": [NOTE | {"text": ["x"]}]}, "notes.0.text"),
        ({"notes": [NOTE | {"id": "a/b"}]}, "notes.0.id"),
        ({"notes": [NOTE | {"width": 59}]}, "notes.0.width"),
        ({"notes": [NOTE | {"height": 2_001}]}, "notes.0.height"),
        ({"notes": [NOTE | {"height": 90.5}]}, "notes.0.height"),
        ({"notes": [NOTE | {"color": "url(x)"}]}, "notes.0.color"),
        ({"notes": [NOTE | {"position": {"x": float("nan"), "y": 0}}]}, "notes.0.position.x"),
        ({"notes": [{"id": "n", "text": ""}]}, "notes.0.position"),
        ({"notes": [NOTE | {"html": "<b>"}]}, "notes.0.html"),
    ],
)
def test_a_wrong_shape_is_refused_at_its_place(graph: Any, path: str) -> None:
    assert errors(graph) == [path]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attempts", 3),
        ("maxAttempts", 0),
        ("maxAttempts", 21),
        ("maxAttempts", True),
        ("maxAttempts", "3"),
        pytest.param("maxAttempts", 10**400, id="huge"),
        ("initialDelaySeconds", -1),
        ("maxDelaySeconds", 1e9),
        ("maxDelaySeconds", float("nan")),
        ("backoffMultiplier", 0.5),
        ("backoffMultiplier", 1e6),
    ],
)
def test_an_absurd_retry_is_refused_at_its_place(key: str, value: Any) -> None:
    graph = {"nodes": [NODE, NODE | {"id": "b", "retry": {key: value}}]}
    assert errors(graph) == [f"nodes.1.retry.{key}"]


@pytest.mark.parametrize("node_id", ["", "a/b", "a:b", "a\x00b", "a\nb", "x" * 65])
def test_an_id_that_would_break_scope_keys_is_refused(node_id: str) -> None:
    assert errors({"nodes": [NODE | {"id": node_id}]}) == ["nodes.0.id"]


@pytest.mark.parametrize("node_id", ["a", "my node", "ünï.cödé", "x" * 64, "__class__"])
def test_node_ids_without_scope_separators_are_accepted(node_id: str) -> None:
    assert errors({"nodes": [NODE | {"id": node_id}]}) == []


def test_a_draft_may_hold_what_does_not_compile() -> None:
    graph = {
        "nodes": [{"id": "a", "kind": "transform"}, {"id": "a", "kind": "http_request"}],
        "edges": [{"from": "a", "to": "a"}, {"from": "x", "to": "y", "outcome": "item"}],
        "entryNodeIds": ["nowhere"],
        "failureAutomationId": "nobody",
    }
    assert errors(graph) == []


def test_a_retry_policy_has_defaults() -> None:
    assert Retry.model_validate({}) == Retry(
        maxAttempts=3, initialDelaySeconds=2, backoffMultiplier=2, maxDelaySeconds=300
    )


def test_a_stored_graph_keeps_every_value_and_names_every_edge() -> None:
    given: dict[str, Any] = {
        "nodes": [
            NODE | {
                "config": {"output": {"none": None, "wrapped": {"type": "literal", "value": None}}},
                "input": {"x": {"type": "literal", "value": None}},
                "retry": {},
            }
        ],
        "edges": [
            {"from": "a", "to": "b"},
            {"id": "edge-1", "from": "a", "to": "c", "outcome": "case", "caseKey": "k"},
            {"from": "b", "to": "c"},
        ],
        "testPayloads": [{"id": "p", "name": "P", "payload": {"n": None}}],
    }  # fmt: skip
    stored = Graph.model_validate(given).to_json()
    assert [edge["id"] for edge in stored["edges"]] == ["edge-2", "edge-1", "edge-3"]
    assert stored["edges"][1]["caseKey"] == "k"
    assert stored["edges"][0]["outcome"] == "always"
    assert stored["nodes"][0]["config"] == given["nodes"][0]["config"]
    assert stored["nodes"][0]["input"] == given["nodes"][0]["input"]
    assert stored["nodes"][0]["retry"]["maxAttempts"] == 3
    assert "label" not in stored["nodes"][0]
    again = Graph.model_validate(json.loads(json.dumps(stored)))
    assert again.to_json() == stored


def test_a_graph_without_notes_is_stored_as_before_there_were_any() -> None:
    assert "notes" not in Graph.model_validate({"nodes": [NODE]}).to_json()
    kept = Graph.model_validate({"nodes": [NODE], "notes": [NOTE]}).to_json()["notes"]
    assert kept == [{**NOTE, "width": 240, "height": 120, "color": "yellow"}]

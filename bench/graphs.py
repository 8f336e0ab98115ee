"""The automations that are measured."""

from itertools import pairwise
from typing import Any

Graph = dict[str, Any]


def _chain(nodes: list[dict[str, Any]]) -> Graph:
    pairs = pairwise(nodes)
    return {"nodes": nodes, "edges": [{"from": a["id"], "to": b["id"]} for a, b in pairs]}


def _transform(node_id: str, value: Any) -> dict[str, Any]:
    return {"id": node_id, "kind": "transform", "config": {"output": {"value": value}}}


ONE_QUICK = _chain([_transform("a", 1)])

THREE_QUICK = _chain(
    [
        _transform("a", 1),
        _transform("b", {"type": "node", "value": "a.value"}),
        _transform("c", {"type": "expression", "value": "nodes.b.value + 1"}),
    ]
)

NODES = 20


def quick_chain(nodes: int) -> Graph:
    """A chain of nodes that only compute."""
    return _chain([_transform(f"n{index}", index) for index in range(nodes)])


QUICK_CHAIN = quick_chain(NODES)


def outside_chain(url: str, nodes: int = NODES) -> Graph:
    """A chain of nodes that call a local endpoint."""
    return _chain(
        [
            {"id": f"n{index}", "kind": "http_request", "config": {"method": "GET", "url": url}}
            for index in range(nodes)
        ]
    )


QUICK_LOOP = {
    "nodes": [
        {
            "id": "loop",
            "kind": "for_each",
            "config": {"items": {"type": "trigger", "value": "items"}},
        },
        _transform("body", {"type": "expression", "value": "item + 1"}),
    ],
    "edges": [{"from": "loop", "to": "body", "outcome": "item"}],
}

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

QUICK_CHAIN = _chain([_transform(f"n{index}", index) for index in range(NODES)])


def outside_chain(url: str) -> Graph:
    """A chain of nodes that call a local endpoint."""
    return _chain(
        [
            {"id": f"n{index}", "kind": "http_request", "config": {"method": "GET", "url": url}}
            for index in range(NODES)
        ]
    )

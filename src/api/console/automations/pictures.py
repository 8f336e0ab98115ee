"""Pictures of graphs, as the script reads them that draws them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.automation.automations.rules.graph.differences import GraphDifference, united
from models.automation.run_overviews.shapes import GraphNodeShape, RunGraph
from models.core.base import JsonObject


@dataclass(frozen=True, slots=True)
class Picture:
    """A graph that is drawn; what its nodes are given is not in it."""

    graph: RunGraph
    changes: JsonObject = field(default_factory=dict)
    """The changes of nodes and of edges, by their ids, where two versions are drawn in one."""

    @property
    def nodes(self) -> Sequence[GraphNodeShape]:
        return self.graph.nodes

    @property
    def data(self) -> JsonObject:
        """The picture as JSON in the page."""
        drawn: JsonObject = self.graph.model_dump(mode="json", by_alias=True)
        return {**drawn, "changes": self.changes}


def picture_of(graph: JsonObject) -> Picture:
    """The picture of a stored graph."""
    return Picture(_drawn(graph))


def picture_of_both(before: JsonObject, after: JsonObject, changes: GraphDifference) -> Picture:
    """Two graphs in one picture, with what is added, removed and changed."""
    union = _drawn(united(before, after))
    edge_changes = {(edge.source, edge.target): edge.change.value for edge in changes.edges}
    edges = {
        edge.id: edge_changes[edge.source, edge.target]
        for edge in union.edges
        if (edge.source, edge.target) in edge_changes
    }
    return Picture(
        union, {"nodes": {node.id: node.change.value for node in changes.nodes}, "edges": edges}
    )


def _drawn(graph: JsonObject) -> RunGraph:
    """The nodes, and the edges between them that lead forward.

    A draft may name nodes that are not there and lead in circles, and so may two versions in one
    picture. Neither has a place in layers.
    """
    nodes = graph.get("nodes") or []
    ids = {node["id"] for node in nodes}
    ways = [one for one in graph.get("edges") or [] if one["from"] in ids and one["to"] in ids]
    forward = _without_circles(ways)
    edges = [{**edge, "id": f"edge-{number}"} for number, edge in enumerate(forward)]
    return RunGraph.model_validate({"nodes": nodes, "edges": edges})


def _without_circles(edges: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """The edges, except each that would close a circle with earlier edges."""
    following: dict[str, list[str]] = {}
    forward = []
    for edge in edges:
        if not _leads(following, edge["to"], edge["from"]):
            following.setdefault(edge["from"], []).append(edge["to"])
            forward.append(edge)
    return forward


def _leads(following: Mapping[str, Sequence[str]], start: str, end: str) -> bool:
    """True when one node leads to another, or is the same."""
    reached, waiting = {start}, [start]
    while waiting and end not in reached:
        ahead = [node for node in following.get(waiting.pop(), ()) if node not in reached]
        reached.update(ahead)
        waiting.extend(ahead)
    return end in reached

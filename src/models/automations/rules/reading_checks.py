"""Outputs that a node reads before they can be there (C8)."""

from collections.abc import Iterator, Mapping, Sequence

from models.automations.rules.graph import Graph, GraphEdge, GraphNode
from models.automations.rules.kinds import NodeKind, shorten
from models.automations.rules.reach import enclosing, following, homes_of, reached
from models.automations.rules.reads import node_references


def reading_problems(graph: Graph, edges: Sequence[GraphEdge]) -> Iterator[tuple[str, str]]:
    """Reads that are null in every run, given the edges of a graph without cycles.

    An item outside of a loop is none: a run from a node brings it along as its `scope`.
    """
    home = homes_of((node.id for node in graph.nodes), edges)
    repeats = frozenset(node.id for node in graph.nodes if node.kind == NodeKind.REPEAT)
    steps = following(edges)
    for node in graph.nodes:
        read = (node_references(node) or frozenset()) & home.keys()
        later = reached([node.id], steps) if read else {}
        for other in sorted(read & later.keys()):
            if not _seen_from_before(node, other, home, repeats):
                yield node.id, f"It reads {_named(other, node)}, which has not run by then."


def _seen_from_before(
    node: GraphNode, other: str, home: Mapping[str, str], repeats: frozenset[str]
) -> bool:
    """Whether both are in one repeat: what it has computed is seen in its next iteration."""
    around = {*enclosing(node.id, home), node.id}
    return not repeats.isdisjoint(around & {*enclosing(other, home)})


def _named(other: str, node: GraphNode) -> str:
    return "its own output" if other == node.id else f'the later node "{shorten(other)}"'

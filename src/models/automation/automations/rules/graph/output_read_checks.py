"""Checks that a node reads only outputs that are visible to it and can exist by then (C8)."""

from collections.abc import Collection, Iterator, Sequence

from models.automation.automations.rules.graph.kinds import NodeKind, shorten
from models.automation.automations.rules.graph.loop_nesting import (
    enclosing,
    following,
    homes_of,
    reached,
)
from models.automation.automations.rules.graph.shapes import Graph, GraphEdge, GraphNode
from models.automation.automations.rules.language.static_reads import node_references


def reading_problems(graph: Graph, edges: Sequence[GraphEdge]) -> Iterator[tuple[str, str]]:
    """The reads that give null in every run, for a graph without cycles.

    An item outside of a loop is none: a run from a node brings it along as its `scope`.
    """
    home = homes_of((node.id for node in graph.nodes), edges)
    repeats = frozenset(node.id for node in graph.nodes if node.kind == NodeKind.REPEAT)
    steps = following(edges)
    for node in graph.nodes:
        read = (node_references(node) or frozenset()) & home.keys()
        later = reached([node.id], steps) if read else {}
        around = {*enclosing(node.id, home), node.id}
        for read_id in sorted(read):
            loops = enclosing(read_id, home)
            if not around.issuperset(loops):
                yield node.id, f"It reads {_named(read_id, node)}, {_hidden(loops, around)}."
            # What a repeat has computed is seen in its next iteration.
            elif read_id in later and repeats.isdisjoint(loops):
                yield node.id, f"It reads {_named(read_id, node)}, which has not run by then."


def _hidden(loops: Sequence[str], around: Collection[str]) -> str:
    beyond = next(loop for loop in loops if loop not in around)
    return f'whose outputs are seen only inside the loop "{shorten(beyond)}"'


def _named(other: str, node: GraphNode) -> str:
    return "its own output" if other == node.id else f'the node "{shorten(other)}"'

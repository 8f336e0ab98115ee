"""The planner's view of a plan: ways out of a node, and the loop a node belongs to.

Standard library only; every sequence is sorted, so that equal plans give equal orders.
"""

from dataclasses import dataclass

from models.automation.automations.rules.graph.kinds import EdgeOutcome
from models.automation.automations.rules.graph.loop_nesting import ROOT, homes_of
from models.automation.automations.rules.planner.plan import Plan, PlanEdge, PlanNode

__all__ = ["ROOT", "Topology", "topology_of"]

_ON_FAILURE = (EdgeOutcome.FAILURE, EdgeOutcome.FINALLY)


@dataclass(frozen=True, slots=True)
class Topology:
    """A plan, indexed. `home` is the innermost loop whose body holds the node (decisions C8)."""

    nodes: dict[str, PlanNode]
    ways_out: dict[str, tuple[PlanEdge, ...]]
    """Edges inside one scope, the ones an ending of the node resolves."""
    bodies: dict[str, tuple[str, ...]]
    """The nodes at home in each loop, and in `ROOT`."""
    arrivals: dict[str, int]
    """Incoming edges from the same scope."""
    starts: dict[str, tuple[str, ...]]
    """Nodes that begin with the scope: the plan's entries, or the targets of `item`."""

    def handles_failure(self, node_id: str) -> bool:
        """True when an edge leads on from the node's failure, so that it fails nothing else."""
        return any(edge.outcome in _ON_FAILURE for edge in self.ways_out[node_id])


def topology_of(plan: Plan) -> Topology:
    """Index a plan. Edges that cross a scope, other than `item`, are no ways (C8: no escape)."""
    nodes = {node.id: node for node in sorted(plan.nodes, key=lambda node: node.id)}
    edges = sorted(plan.edges, key=_edge_order)
    home = homes_of(nodes, edges)
    ways_out: dict[str, list[PlanEdge]] = {node_id: [] for node_id in nodes}
    starts: dict[str, list[str]] = {ROOT: sorted(set(plan.entries))}
    arrivals = dict.fromkeys(nodes, 0)
    for edge in edges:
        if edge.outcome is EdgeOutcome.ITEM and home[edge.target] == edge.source:
            starts.setdefault(edge.source, []).append(edge.target)
        elif home[edge.source] == home[edge.target]:
            ways_out[edge.source].append(edge)
            arrivals[edge.target] += 1
    bodies: dict[str, list[str]] = {ROOT: []}
    for node_id in nodes:
        bodies.setdefault(home[node_id], []).append(node_id)
    return Topology(
        nodes,
        {node_id: tuple(ways) for node_id, ways in ways_out.items()},
        {loop: tuple(body) for loop, body in bodies.items()},
        arrivals,
        {loop: tuple(dict.fromkeys(first)) for loop, first in starts.items()},
    )


def _edge_order(edge: PlanEdge) -> tuple[str, str, str, str]:
    return edge.source, edge.target, edge.outcome.value, edge.case_key or ""

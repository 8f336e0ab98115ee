"""Reachability in a graph, and which loop bodies hold a node (decisions C8).

Standard library only; every result is ordered, so that equal graphs give equal orders.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from models.automation.automations.rules.graph.kinds import EdgeOutcome

ROOT = ""
"""The home of nodes outside every loop body."""


class Edge(Protocol):
    """An edge of a plan, or of a graph that is not compiled yet."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def outcome(self) -> str: ...


def following(edges: Iterable[Edge]) -> dict[str, list[str]]:
    """The nodes each node leads to."""
    steps: dict[str, list[str]] = {}
    for edge in edges:
        steps.setdefault(edge.source, []).append(edge.target)
    return steps


def leading(edges: Iterable[Edge]) -> dict[str, list[str]]:
    """The nodes that lead to each node."""
    steps: dict[str, list[str]] = {}
    for edge in edges:
        steps.setdefault(edge.target, []).append(edge.source)
    return steps


def reached(start: Iterable[str], steps: Mapping[str, Sequence[str]]) -> dict[str, None]:
    """The nodes that can be reached, the start included."""
    node_ids = dict.fromkeys(start)
    waiting = list(node_ids)
    while waiting:
        for node_id in steps.get(waiting.pop(), ()):
            if node_id not in node_ids:
                node_ids[node_id] = None
                waiting.append(node_id)
    return node_ids


def body_of(loop: str, edges: Sequence[Edge]) -> list[str]:
    """Nodes reachable by `item` and not by the loop's other outcomes; inner bodies included."""
    steps = following(edges)
    inside = [e.target for e in edges if e.source == loop and e.outcome == EdgeOutcome.ITEM]
    outside = [e.target for e in edges if e.source == loop and e.outcome != EdgeOutcome.ITEM]
    beyond = reached(outside, steps)
    return sorted(node_id for node_id in reached(inside, steps) if node_id not in beyond)


def homes_of(nodes: Iterable[str], edges: Sequence[Edge]) -> dict[str, str]:
    """The innermost loop whose body holds each node, `ROOT` for none."""
    home = dict.fromkeys(nodes, ROOT)
    loops = sorted({edge.source for edge in edges if edge.outcome == EdgeOutcome.ITEM})
    bodies = [(loop, body_of(loop, edges)) for loop in loops]
    # The widest body first, so that the innermost loop is written last.
    for loop, body in sorted(bodies, key=lambda entry: (-len(entry[1]), entry[0])):
        for node_id in body:
            home[node_id] = loop
    return home


def enclosing(node_id: str, home: Mapping[str, str]) -> tuple[str, ...]:
    """The loops around a node, the outermost first."""
    around: list[str] = []
    loop = home[node_id]
    while loop != ROOT and loop not in around:
        around.append(loop)
        loop = home[loop]
    return tuple(reversed(around))

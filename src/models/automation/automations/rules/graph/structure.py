"""Checks of a graph as nodes and edges: ids, entries, cycles, unreachable nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from models.automation.automations.rules.graph.kinds import shorten
from models.automation.automations.rules.graph.loop_checks import loop_problems
from models.automation.automations.rules.graph.loop_nesting import reached
from models.automation.automations.rules.graph.output_read_checks import reading_problems
from models.automation.automations.rules.graph.shapes import Graph, GraphEdge

Problem = tuple[str, str]
"""A node id, empty for the whole graph, and a sentence."""

_LONGEST_CYCLE_SHOWN = 12


def entries_of(graph: Graph) -> list[str]:
    """The nodes at which a run begins: the named entries, or else those nothing leads to (C8)."""
    if graph.entry_node_ids:
        return list(dict.fromkeys(graph.entry_node_ids))
    targets = {edge.target for edge in graph.edges}
    return [node.id for node in graph.nodes if node.id not in targets]


def structure_problems(graph: Graph) -> Iterator[Problem]:
    """The problems with ids, edges, entries, cycles, reachability, loops and reads of outputs."""
    if not graph.nodes:
        yield "", "The graph has no nodes."
        return
    node_ids = {node.id for node in graph.nodes}
    yield from _duplicates(graph)
    yield from _edge_problems(graph.edges, node_ids)
    entries = entries_of(graph)
    for entry in entries:
        if entry not in node_ids:
            yield "", f'The entry node "{shorten(entry)}" does not exist.'
    edges = [e for e in graph.edges if {e.source, e.target} <= node_ids and e.source != e.target]
    following: dict[str, list[str]] = {node.id: [] for node in graph.nodes}
    for edge in edges:
        following[edge.source].append(edge.target)
    cycle = find_cycle(following)
    if cycle:
        yield cycle[0], f"The nodes form a cycle: {_spelled(cycle)}."
    elif not entries:
        yield "", "The graph has no entry node."
    else:
        yield from loop_problems(graph, edges, entries)
        yield from reading_problems(graph, edges)
    connected = reached((entry for entry in entries if entry in node_ids), following)
    for node in graph.nodes:
        if node.id not in connected and node.id not in cycle:
            yield node.id, "No path leads from an entry node to this node."


def _duplicates(graph: Graph) -> Iterator[Problem]:
    for node_id in _repeated(node.id for node in graph.nodes):
        yield node_id, "Another node has the same id."
    for edge_id in _repeated(edge.id for edge in graph.edges if edge.id is not None):
        yield "", f'Two edges have the id "{shorten(edge_id)}".'
    for payload_id in _repeated(payload.id for payload in graph.test_payloads):
        yield "", f'Two test payloads have the id "{shorten(payload_id)}".'


def _repeated(ids: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for item in ids:
        if item in seen:
            repeated[item] = None
        seen.add(item)
    return list(repeated)


def _edge_problems(edges: Sequence[GraphEdge], known: set[str]) -> Iterator[Problem]:
    for edge in edges:
        if edge.source not in known:
            at = edge.target if edge.target in known else ""
            yield at, f'An edge comes from the node "{shorten(edge.source)}", which does not exist.'
        if edge.target not in known:
            at = edge.source if edge.source in known else ""
            yield at, f'An edge leads to the node "{shorten(edge.target)}", which does not exist.'
        elif edge.source == edge.target:
            yield edge.source, "An edge leads from the node to itself."


def find_cycle(following: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes of one cycle in order, empty when there is none."""
    visited_ids: set[str] = set()
    for start in following:
        if start in visited_ids:
            continue
        path: dict[str, Iterator[str]] = {start: iter(following[start])}
        while path:
            current = next(reversed(path))
            step = next(path[current], None)
            if step is None:
                visited_ids.add(current)
                del path[current]
            elif step in path:
                trail = list(path)
                return trail[trail.index(step) :]
            elif step not in visited_ids:
                path[step] = iter(following[step])
    return []


def _spelled(cycle: Sequence[str]) -> str:
    shown = [shorten(node_id) for node_id in cycle[:_LONGEST_CYCLE_SHOWN]]
    rest = len(cycle) - len(shown)
    return " → ".join([*shown, *([f"… {rest} more"] if rest else []), shown[0]])

"""Checks of loops: edges that leave a body, missing bodies, nesting that is too deep (C8)."""

from collections.abc import Iterator, Mapping, Sequence

from models.automation.automations.rules.graph.kinds import EdgeOutcome, is_loop, shorten
from models.automation.automations.rules.graph.loop_nesting import ROOT, enclosing, homes_of
from models.automation.automations.rules.graph.shapes import Graph, GraphEdge, GraphNode

MAX_NESTING = 5
"""Depth of nested loops (decisions C3)."""

Home = Mapping[str, str]


def loop_problems(
    graph: Graph, edges: Sequence[GraphEdge], entries: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The problems with loops, given edges between existing nodes and no cycle."""
    loops = [node for node in graph.nodes if is_loop(node.kind)]
    if not loops:
        return
    home = homes_of((node.id for node in graph.nodes), edges)
    for loop in loops:
        for message in _own_problems(loop, edges, home):
            yield loop.id, message
    for edge in edges:
        problem = _crossing(edge, home)
        if problem is not None:
            yield problem
    for entry in entries:
        if home.get(entry, ROOT) != ROOT:
            yield entry, f"A run cannot begin in the body of {_named(home[entry])}."


def _own_problems(loop: GraphNode, edges: Sequence[GraphEdge], home: Home) -> Iterator[str]:
    if not any(e.source == loop.id and e.outcome == EdgeOutcome.ITEM for e in edges):
        yield "No edge with the outcome item leads to what it repeats."
    if len(enclosing(loop.id, home)) >= MAX_NESTING:
        yield f"Loops can be nested {MAX_NESTING} deep."
    collect = loop.parameters().get("collect")
    if isinstance(collect, str) and home.get(collect) != loop.id:
        yield f'It collects outputs of "{shorten(collect)}", which is no node of its own body.'
    if collect is True and len(ends := _ends(loop, edges, home)) > 1:
        named = ", ".join(map(_quoted, ends))
        yield f"It collects outputs, but its body ends with several nodes: name one of {named}."


def _ends(loop: GraphNode, edges: Sequence[GraphEdge], home: Home) -> list[str]:
    """The last nodes of a loop's own body."""
    followed = {e.source for e in edges if home[e.target] == loop.id}
    return sorted(id_ for id_, own in home.items() if own == loop.id and id_ not in followed)


def _crossing(edge: GraphEdge, home: Home) -> tuple[str, str] | None:
    """The problem of an edge between two scopes: only `item` leads into a body, none out."""
    source, target = edge.source, edge.target
    inner = source if edge.outcome == EdgeOutcome.ITEM else home[source]
    if home[target] == inner:
        return None
    if edge.outcome == EdgeOutcome.ITEM and home[target] == home[source]:
        return source, f"Its item edge leads to {_quoted(target)}, to which its other edges lead."
    if home[target] != ROOT and home[target] not in (*enclosing(source, home), source):
        way = f"An edge from {_quoted(source)} leads into the body of {_named(home[target])}"
        return target, f"{way} from outside; only its item edge may."
    way = f"An edge to {_quoted(target)} leaves the body of {_named(inner)}"
    return source, f"{way}; what follows the loop follows its done edge."


def _named(loop: str) -> str:
    return f"the loop {_quoted(loop)}"


def _quoted(node_id: str) -> str:
    return f'"{shorten(node_id)}"'

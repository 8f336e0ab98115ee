"""The compiled plan of a version: all that a workflow knows of a graph.

A plan enters Temporal history, so it carries ids, kinds, labels, edges and timing, never a config
or a value of a user's data.

See architecture.md#the-way-of-one-run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from models.automation.automations.rules.graph import kinds as graph_kinds

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PlanRetry:
    """A node's retry policy in seconds, taken 1:1 into a Temporal RetryPolicy.

    See interface.md#retries.
    """

    max_attempts: int = 3
    initial_delay_seconds: float = 2
    backoff_multiplier: float = 2
    max_delay_seconds: float = 300


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One node; `retry` None means one attempt."""

    id: str
    kind: str
    label: str = ""
    timeout_seconds: int = 300
    retry: PlanRetry | None = None
    disabled: bool = False
    """Not run, but passes on as if it had succeeded."""
    join: graph_kinds.JoinMode = graph_kinds.JoinMode.ALL
    join_count: int = 0
    taken_before: int = 0
    """Incoming edges that count as taken because they come from outside the plan.

    See interface.md#runs-from-a-node.
    """
    pauses: bool = False
    """A repeat that lets time pass between its iterations."""


@dataclass(frozen=True, slots=True)
class PlanEdge:
    """The way from one node to another that `outcome` opens; `case_key` belongs to `case`."""

    source: str
    target: str
    outcome: graph_kinds.EdgeOutcome = graph_kinds.EdgeOutcome.ALWAYS
    case_key: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph that compiled: every edge names nodes of the plan and there is no cycle."""

    nodes: tuple[PlanNode, ...]
    edges: tuple[PlanEdge, ...]
    entries: tuple[str, ...]
    on_error: graph_kinds.OnError = graph_kinds.OnError.STOP
    resumed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The iterations that run, by scope key, and where each begins; other loops run whole.

    See interface.md#runs-from-a-node.
    """

    def nodes_by_id(self) -> dict[str, PlanNode]:
        return {node.id: node for node in self.nodes}

    def leaves(self) -> tuple[str, ...]:
        """The nodes that run last in their scope; the run's output is theirs.

        Disabled nodes have no output and are not counted.

        See interface.md#execution-of-a-graph.
        """
        ways = [edge for edge in self.edges if edge.outcome is not graph_kinds.EdgeOutcome.ITEM]
        run = [node.id for node in self.nodes if not node.disabled]
        leading_on = reached(run, leading(ways))
        inner = {edge.source for edge in ways if edge.target in leading_on}
        return tuple(node_id for node_id in run if node_id not in inner)

    def scope_of(self, node_id: str, index: int = 0) -> str:
        """The scope key of a node in iteration `index` of its own loop, and 0 of those around it.

        Raises KeyError when the plan has no such node.
        """
        loops = enclosing(node_id, self._homes())
        return "/".join(f"{loop}:{index if loop == loops[-1] else 0}" for loop in loops)

    def restricted(
        self, starts: str | Sequence[tuple[str, str]], only: frozenset[str] | None = None
    ) -> "Plan":
        """The plan of a run from some nodes: what is reachable from them.

        A start is a node in a scope; a text is a node in the root, or in the first iterations of
        the loops around it. Of a loop that a start lies in, only the iterations of starts run;
        one that is a start itself runs whole. Edges from elsewhere count as taken. With `only`,
        the other reachable nodes are passed through like disabled ones, so that the named nodes
        keep their order; starts and the loops around named nodes count as named.

        Raises KeyError when the plan has no such node or scope.

        See interface.md#runs-from-a-node.
        """
        if isinstance(starts, str):
            starts = [(starts, self.scope_of(starts))]
        steps = following(self.edges)
        home = self._homes()
        places = _places(starts, home)
        entries = _first(places.pop(ROOT), steps)
        node_ids = reached(entries, steps)
        before = dict.fromkeys(node_ids, 0)
        for edge in self.edges:
            if edge.target in node_ids and edge.source not in node_ids:
                before[edge.target] += 1
        named = None if only is None else _with_loops(only.union(name for name, _ in starts), home)
        nodes = tuple(
            replace(
                node,
                taken_before=node.taken_before + before[node.id],
                disabled=node.disabled or (named is not None and node.id not in named),
            )
            for node in self.nodes
            if node.id in node_ids
        )
        resumed = tuple((scope, _first(begins, steps)) for scope, begins in sorted(places.items()))
        return Plan(nodes, self._edges_within(node_ids), entries, self.on_error, resumed)

    def until(self, node_id: str) -> "Plan":
        """The plan of a test run that stops at a node: the node, its ancestors and their bodies.

        Raises KeyError when the plan has no such node.
        """
        around = enclosing(node_id, self._homes())
        kept = reached([node_id], leading(self.edges))
        for loop in [name for name in kept if name not in around]:
            kept.update(dict.fromkeys(body_of(loop, self.edges)))
        return self._part(kept, tuple(entry for entry in self.entries if entry in kept))

    def loop(self, loop: str) -> "Plan":
        """One loop and its body, which another execution goes through."""
        return self._part(dict.fromkeys([loop, *body_of(loop, self.edges)]), (loop,))

    def iteration(self, loop: str, on_error: graph_kinds.OnError) -> "Plan":
        """The body of a loop, as a plan that is run once per item."""
        body = dict.fromkeys(body_of(loop, self.edges))
        first = [e.target for e in self.edges if e.source == loop and e.target in body]
        return replace(self._part(body, tuple(dict.fromkeys(first))), on_error=on_error)

    def to_json(self) -> dict[str, Any]:
        """A compact JSON value: rows without their trailing defaults, edges by node position."""
        position = {node.id: index for index, node in enumerate(self.nodes)}
        value: dict[str, Any] = {
            "format": _FORMAT,
            "nodes": [_node_row(node) for node in self.nodes],
            "edges": [_edge_row(edge, position) for edge in self.edges],
            "entries": [position[entry] for entry in self.entries],
            "onError": self.on_error.value,
        }
        if self.resumed:
            value["resumed"] = [[scope, list(begins)] for scope, begins in self.resumed]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Plan":
        """The plan that `to_json` wrote. Raises ValueError for another format."""
        if value["format"] != _FORMAT:
            raise ValueError(f"The plan has format {value['format']}, not {_FORMAT}.")
        nodes = tuple(_read_node(row) for row in value["nodes"])
        return cls(
            nodes,
            tuple(_read_edge(row, nodes) for row in value["edges"]),
            tuple(nodes[index].id for index in value["entries"]),
            graph_kinds.OnError(value["onError"]),
            tuple((scope, tuple(begins)) for scope, begins in value.get("resumed", ())),
        )

    def _part(self, kept: Mapping[str, None], entries: tuple[str, ...]) -> "Plan":
        nodes = tuple(node for node in self.nodes if node.id in kept)
        return Plan(nodes, self._edges_within(kept), entries, self.on_error, self.resumed)

    def _edges_within(self, kept: Mapping[str, None]) -> tuple[PlanEdge, ...]:
        return tuple(edge for edge in self.edges if edge.source in kept and edge.target in kept)

    def _homes(self) -> dict[str, str]:
        return homes_of((node.id for node in self.nodes), self.edges)


def _with_loops(named: frozenset[str], home: Mapping[str, str]) -> frozenset[str]:
    """The nodes, and the loops around them."""
    around = (loop for name in named if name in home for loop in enclosing(name, home))
    return named.union(around)


def _places(starts: Sequence[tuple[str, str]], home: Mapping[str, str]) -> dict[str, list[str]]:
    """The nodes at which each scope begins, by scope key: starts, or loops that lead to one."""
    start_set = set(starts)
    places: dict[str, list[str]] = {ROOT: []}
    for node_id, scope_key in starts:
        loops = enclosing(node_id, home)
        parts = scope_key.split("/") if scope_key else []
        if [part.rpartition(":")[0] for part in parts] != list(loops):
            raise KeyError(scope_key)
        for depth, begin in enumerate((*loops, node_id)):
            scope = "/".join(parts[:depth])
            places.setdefault(scope, []).append(begin)
            if (begin, scope) in start_set:
                break
    return places


def _first(begins: Sequence[str], steps: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The beginnings that no other one leads to."""
    later = {node_id for begin in begins for node_id in reached(steps.get(begin, ()), steps)}
    return tuple(dict.fromkeys(begin for begin in begins if begin not in later))


_NODE_DEFAULTS: tuple[Any, ...] = (
    "",
    "",
    "",
    300,
    None,
    0,
    graph_kinds.JoinMode.ALL.value,
    0,
    0,
    0,
)


def _node_row(node: PlanNode) -> list[Any]:
    retry = node.retry
    row: list[Any] = [
        node.id,
        node.kind,
        node.label,
        node.timeout_seconds,
        retry
        and [
            retry.max_attempts,
            retry.initial_delay_seconds,
            retry.backoff_multiplier,
            retry.max_delay_seconds,
        ],
        int(node.disabled),
        node.join.value,
        node.join_count,
        node.taken_before,
        int(node.pauses),
    ]
    while len(row) > 2 and row[-1] == _NODE_DEFAULTS[len(row) - 1]:
        row.pop()
    return row


def _read_node(row: Sequence[Any]) -> PlanNode:
    node_id, kind, label, timeout, retry, disabled, join, join_count, before, pauses = (
        *row,
        *_NODE_DEFAULTS[len(row) :],
    )
    return PlanNode(
        id=node_id,
        kind=kind,
        label=label,
        timeout_seconds=timeout,
        retry=None if retry is None else PlanRetry(*retry),
        disabled=bool(disabled),
        join=graph_kinds.JoinMode(join),
        join_count=join_count,
        taken_before=before,
        pauses=bool(pauses),
    )


def _edge_row(edge: PlanEdge, position: Mapping[str, int]) -> list[Any]:
    row: list[Any] = [position[edge.source], position[edge.target]]
    if edge.outcome is not graph_kinds.EdgeOutcome.ALWAYS or edge.case_key is not None:
        row.append(edge.outcome.value)
    if edge.case_key is not None:
        row.append(edge.case_key)
    return row


def _read_edge(row: Sequence[Any], nodes: Sequence[PlanNode]) -> PlanEdge:
    outcome = graph_kinds.EdgeOutcome(row[2]) if len(row) > 2 else graph_kinds.EdgeOutcome.ALWAYS
    return PlanEdge(nodes[row[0]].id, nodes[row[1]].id, outcome, row[3] if len(row) > 3 else None)


def costs_of(plan: Plan) -> dict[str, graph_kinds.CostClass]:
    """The cost class of every node. A loop of quick nodes that lets no time pass is quick too."""
    costs = {
        node.id: graph_kinds.NODE_KINDS[graph_kinds.NodeKind(node.kind)].cost for node in plan.nodes
    }
    loops = [node.id for node in plan.nodes if costs[node.id] is graph_kinds.CostClass.LOOP]
    if not loops:
        return costs
    pausing = {node.id for node in plan.nodes if node.pauses}
    light = (graph_kinds.CostClass.QUICK, graph_kinds.CostClass.LOOP)
    bodies = {loop: [loop, *body_of(loop, plan.edges)] for loop in loops}
    quick = [
        loop
        for loop, body in bodies.items()
        if all(costs[node_id] in light and node_id not in pausing for node_id in body)
    ]
    return costs | dict.fromkeys(quick, graph_kinds.CostClass.QUICK)


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
    inside = [
        e.target for e in edges if e.source == loop and e.outcome == graph_kinds.EdgeOutcome.ITEM
    ]
    outside = [
        e.target for e in edges if e.source == loop and e.outcome != graph_kinds.EdgeOutcome.ITEM
    ]
    beyond = reached(outside, steps)
    return sorted(node_id for node_id in reached(inside, steps) if node_id not in beyond)


def homes_of(nodes: Iterable[str], edges: Sequence[Edge]) -> dict[str, str]:
    """The innermost loop whose body holds each node, `ROOT` for none."""
    home = dict.fromkeys(nodes, ROOT)
    loops = sorted({edge.source for edge in edges if edge.outcome == graph_kinds.EdgeOutcome.ITEM})
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

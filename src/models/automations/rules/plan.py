"""The compiled plan of a version: the only map of a graph that a workflow holds (design 3.3).

A plan enters Temporal history, so it carries ids, kinds, labels, edges and timing, never a config
or a value of a user's data. Standard library only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models.automations.rules.kinds import EdgeOutcome, JoinMode, OnError

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PlanRetry:
    """A node's retry policy in seconds, taken 1:1 into a Temporal RetryPolicy (decisions D2)."""

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
    join: JoinMode = JoinMode.ALL
    join_count: int = 0
    taken_before: int = 0
    """Incoming edges that count as taken because they come from outside the plan (D3)."""


@dataclass(frozen=True, slots=True)
class PlanEdge:
    """The way from one node to another that `outcome` opens; `case_key` belongs to `case`."""

    source: str
    target: str
    outcome: EdgeOutcome = EdgeOutcome.ALWAYS
    case_key: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph that compiled: every edge names nodes of the plan and there is no cycle."""

    nodes: tuple[PlanNode, ...]
    edges: tuple[PlanEdge, ...]
    entries: tuple[str, ...]
    on_error: OnError = OnError.STOP

    def nodes_by_id(self) -> dict[str, PlanNode]:
        return {node.id: node for node in self.nodes}

    def leaves(self) -> tuple[str, ...]:
        """The nodes without outgoing edges, whose outputs are the run's output (C8)."""
        inner = {edge.source for edge in self.edges}
        return tuple(node.id for node in self.nodes if node.id not in inner)

    def restricted(self, start_node_id: str, only: frozenset[str] | None = None) -> "Plan":
        """The plan of a run from one node (decisions D3): what is reachable from it.

        Edges from elsewhere count as taken. With `only`, the other reachable nodes are passed
        through like disabled ones, so that the named nodes keep their order; the start counts
        as named.

        Raises KeyError when the plan has no such node.
        """
        self._require(start_node_id)
        kept = _reach([start_node_id], _following(self.edges))
        before = dict.fromkeys(kept, 0)
        for edge in self.edges:
            if edge.target in kept and edge.source not in kept:
                before[edge.target] += 1
        runs = kept if only is None else (only | {start_node_id})
        nodes = tuple(
            replace(
                node,
                taken_before=node.taken_before + before[node.id],
                disabled=node.disabled or node.id not in runs,
            )
            for node in self.nodes
            if node.id in kept
        )
        return Plan(nodes, self._edges_within(kept), (start_node_id,), self.on_error)

    def until(self, node_id: str) -> "Plan":
        """The plan of a test run that stops at a node: the node and its ancestors.

        Raises KeyError when the plan has no such node.
        """
        self._require(node_id)
        kept = _reach([node_id], _leading(self.edges))
        return Plan(
            tuple(node for node in self.nodes if node.id in kept),
            self._edges_within(kept),
            tuple(entry for entry in self.entries if entry in kept),
            self.on_error,
        )

    def to_json(self) -> dict[str, Any]:
        """A compact JSON value: rows without their trailing defaults, edges by node position."""
        position = {node.id: index for index, node in enumerate(self.nodes)}
        return {
            "format": _FORMAT,
            "nodes": [_node_row(node) for node in self.nodes],
            "edges": [_edge_row(edge, position) for edge in self.edges],
            "entries": [position[entry] for entry in self.entries],
            "onError": self.on_error.value,
        }

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
            OnError(value["onError"]),
        )

    def _edges_within(self, kept: frozenset[str]) -> tuple[PlanEdge, ...]:
        return tuple(edge for edge in self.edges if edge.source in kept and edge.target in kept)

    def _require(self, node_id: str) -> None:
        if not any(node.id == node_id for node in self.nodes):
            raise KeyError(node_id)


def _following(edges: Iterable[PlanEdge]) -> dict[str, list[str]]:
    following: dict[str, list[str]] = {}
    for edge in edges:
        following.setdefault(edge.source, []).append(edge.target)
    return following


def _leading(edges: Iterable[PlanEdge]) -> dict[str, list[str]]:
    leading: dict[str, list[str]] = {}
    for edge in edges:
        leading.setdefault(edge.target, []).append(edge.source)
    return leading


def _reach(start: Iterable[str], steps: Mapping[str, Sequence[str]]) -> frozenset[str]:
    reached = set(start)
    waiting = list(start)
    while waiting:
        for node_id in steps.get(waiting.pop(), ()):
            if node_id not in reached:
                reached.add(node_id)
                waiting.append(node_id)
    return frozenset(reached)


_NODE_DEFAULTS: tuple[Any, ...] = ("", "", "", 300, None, 0, JoinMode.ALL.value, 0, 0)


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
    ]
    while len(row) > 2 and row[-1] == _NODE_DEFAULTS[len(row) - 1]:
        row.pop()
    return row


def _read_node(row: Sequence[Any]) -> PlanNode:
    node_id, kind, label, timeout, retry, disabled, join, join_count, before = (
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
        join=JoinMode(join),
        join_count=join_count,
        taken_before=before,
    )


def _edge_row(edge: PlanEdge, position: Mapping[str, int]) -> list[Any]:
    row: list[Any] = [position[edge.source], position[edge.target]]
    if edge.outcome is not EdgeOutcome.ALWAYS or edge.case_key is not None:
        row.append(edge.outcome.value)
    if edge.case_key is not None:
        row.append(edge.case_key)
    return row


def _read_edge(row: Sequence[Any], nodes: Sequence[PlanNode]) -> PlanEdge:
    outcome = EdgeOutcome(row[2]) if len(row) > 2 else EdgeOutcome.ALWAYS
    return PlanEdge(nodes[row[0]].id, nodes[row[1]].id, outcome, row[3] if len(row) > 3 else None)

"""The nodes of two runs side by side: pure, over what each run executed.

A node is the same node by its id and its scope. The order is that of the graph, an iteration after
the other: moments of nodes that took no time tell no order. A node of the reference alone stands
behind the one that it follows there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from models.automation.automation_runs.rows import ExecutedNode
from models.automation.automation_runs.rules import OPEN_NODE, NodeStatus
from models.core.base import JsonObject

Place = tuple[str, str]
"""A node id and a scope key."""


class Aspect(StrEnum):
    """A part of a node that two runs may have otherwise."""

    PRESENCE = "presence"
    STATUS = "status"
    BRANCH = "branch"
    INPUT = "input"
    OUTPUT = "output"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Pair:
    """A node in the run and in the reference; one of the two may lack."""

    node: ExecutedNode | None
    counterpart: ExecutedNode | None

    @property
    def place(self) -> Place:
        node = self.node or self.counterpart
        assert node is not None, "one of the two is there"
        return place_of(node)


def place_of(node: ExecutedNode) -> Place:
    """The place of a node among all of its run."""
    return node.node_id, node.scope_key


def in_order(nodes: Sequence[ExecutedNode], graph: JsonObject) -> list[ExecutedNode]:
    """The nodes in the order in which their graph leads from one to the next."""
    ranks = _ranks(graph)
    return sorted(nodes, key=lambda node: _turn(node, ranks))


def _ranks(graph: JsonObject) -> Mapping[str, int]:
    ids = [node["id"] for node in graph.get("nodes") or []]
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(ids, ()))
    for edge in graph.get("edges") or []:
        sorter.add(edge["to"], edge["from"])
    with suppress(CycleError):  # no graph that was executed has one
        ids = list(sorter.static_order())
    return {node_id: rank for rank, node_id in enumerate(ids)}


def _turn(node: ExecutedNode, ranks: Mapping[str, int]) -> tuple[object, ...]:
    """Ranks and iterations from the outermost loop inward, then the rank of the node itself."""
    turn: list[object] = []
    for step in node.scope_key.split("/") if node.scope_key else ():
        loop, _, index = step.rpartition(":")
        turn += [ranks.get(loop, len(ranks)), int(index) if index.isdigit() else 0]
    return (*turn, ranks.get(node.node_id, len(ranks)))


def align(run: Sequence[ExecutedNode], reference: Sequence[ExecutedNode]) -> list[Pair]:
    """The pairs of all nodes of both runs, each once."""
    places = {place_of(node) for node in run}
    counterparts = {place_of(node): node for node in reference}
    behind: dict[Place | None, list[Pair]] = {}
    last: Place | None = None
    for node in reference:
        if place_of(node) in places:
            last = place_of(node)
        else:
            behind.setdefault(last, []).append(Pair(None, node))
    return [*behind.get(None, ()), *_in_order(run, counterparts, behind)]


def _in_order(
    run: Sequence[ExecutedNode],
    counterparts: dict[Place, ExecutedNode],
    behind: dict[Place | None, list[Pair]],
) -> Iterator[Pair]:
    for node in run:
        place = place_of(node)
        yield Pair(node, counterparts.get(place))
        yield from behind.get(place, ())


def aspects(pair: Pair, *, run_is_whole: bool, reference_is_whole: bool) -> list[Aspect]:
    """The aspects in which a node differs.

    A run that goes on, or of which not all nodes were read, may have a node that is not there. What
    a retry reused was not executed in it, and differs in nothing.
    """
    node, counterpart = pair.node, pair.counterpart
    if node is None or counterpart is None:
        is_known = run_is_whole if node is None else reference_is_whole
        return [Aspect.PRESENCE] if is_known else []
    if node.reused or counterpart.reused:
        return []
    if NodeStatus.SKIPPED in (node.status, counterpart.status):
        return [Aspect.STATUS] if node.status != counterpart.status else []
    differs = {Aspect.INPUT: node.input_digest != counterpart.input_digest}
    if node.status not in OPEN_NODE and counterpart.status not in OPEN_NODE:
        ways = (node.outcome, node.case_key), (counterpart.outcome, counterpart.case_key)
        differs |= {
            Aspect.STATUS: node.status != counterpart.status,
            Aspect.BRANCH: ways[0] != ways[1],
            Aspect.OUTPUT: node.output_digest != counterpart.output_digest,
            Aspect.ERROR: node.error != counterpart.error,
        }
    return [aspect for aspect in Aspect if differs.get(aspect)]

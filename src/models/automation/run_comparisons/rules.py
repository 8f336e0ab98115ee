"""Pure rules of comparisons: the nodes of two runs side by side, and values that differ."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any

from models.automation.automation_runs.rules import OPEN_NODE, ExecutedNode, NodeStatus
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
    """The pairs of all nodes of both runs, each once.

    A node is the same node by its id and its scope. The order is that of the graph, an iteration
    after the other: moments of nodes that took no time tell no order. A node of the reference alone
    stands behind the one that it follows there.
    """
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

    A run that continues, or of which not all nodes were read, may still get a missing node. What a
    retry reused was not executed in it, and differs in nothing.
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


MOST_VALUES = 50_000
"""Values that are looked at, of both sides together."""
LONGEST = 200
"""Characters of a value that are shown."""
_BEFORE = 40
"""Characters that are shown before the first one in which two long texts differ."""
_ABSENT: Any = object()


class ValueChange(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at which two values differ; both sides as JSON text, None where there is none."""

    path: str
    change: ValueChange
    before: str | None
    after: str | None


def differences(before: object, after: object, most: int) -> tuple[list[Difference], bool]:
    """The first differences in the order of paths, and whether these are all."""
    budget = iter(range(MOST_VALUES))
    listed = list(islice(_walk(before, after, budget), most + 1))
    is_complete = len(listed) <= most and next(budget, None) is not None
    return listed[:most], is_complete


def _walk(before: object, after: object, budget: Iterator[int]) -> Iterator[Difference]:
    """Differences along a stack of its own: values may be nested deeper than calls."""
    waiting: list[tuple[str, Any, Any]] = [("", before, after)]
    while waiting and next(budget, None) is not None:
        path, old, new = waiting.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            keys = [*old, *(key for key in new if key not in old)]
            waiting.extend(
                (_key(path, key), old.get(key, _ABSENT), new.get(key, _ABSENT))
                for key in reversed(keys)
            )
        elif isinstance(old, list) and isinstance(new, list):
            waiting.extend(
                (f"{path}[{index}]", _at(old, index), _at(new, index))
                for index in reversed(range(max(len(old), len(new))))
            )
        elif not _same(old, new):
            yield _difference(path, old, new)


def _key(path: str, key: str) -> str:
    if key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def _at(values: list[Any], index: int) -> object:
    return values[index] if index < len(values) else _ABSENT


def _same(old: object, new: object) -> bool:
    """True for equal JSON values, where true is not 1 as it is in Python."""
    return isinstance(old, bool) == isinstance(new, bool) and old == new


def _difference(path: str, old: object, new: object) -> Difference:
    if old is _ABSENT:
        return Difference(path, ValueChange.ADDED, None, _brief(_text(new)))
    if new is _ABSENT:
        return Difference(path, ValueChange.REMOVED, _brief(_text(old)), None)
    texts = _text(old), _text(new)
    start = max(0, _common(*texts) - _BEFORE) if max(map(len, texts)) > LONGEST else 0
    before, after = (_brief(text, start) for text in texts)
    return Difference(path, ValueChange.CHANGED, before, after)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _common(one: str, other: str) -> int:
    """The length of the beginning that two texts share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _brief(text: str, start: int = 0) -> str:
    """A text from a character on, with marks where something is left out."""
    part = text[start : start + LONGEST]
    return f"{'…' if start else ''}{part}{'…' if start + LONGEST < len(text) else ''}"

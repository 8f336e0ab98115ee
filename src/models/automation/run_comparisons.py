"""Comparisons of two runs: node by node, where they first differ, and values that differ."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any

from models.automation.automation_runs import history
from models.automation.automation_runs import rules as automation_run_rules
from models.automation.automation_runs.queries import load_run
from models.automation.automations.graphs import stored_graph
from models.automation.automations.runnable_versions import version_numbers
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject, Moment, Shape
from runtime.database import UnitOfWork
from runtime.errors import ValidationError

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

    node: automation_run_rules.ExecutedNode | None
    counterpart: automation_run_rules.ExecutedNode | None

    @property
    def place(self) -> Place:
        node = self.node or self.counterpart
        assert node is not None, "one of the two is there"
        return place_of(node)


def place_of(node: automation_run_rules.ExecutedNode) -> Place:
    """The place of a node among all of its run."""
    return node.node_id, node.scope_key


def in_order(
    nodes: Sequence[automation_run_rules.ExecutedNode], graph: JsonObject
) -> list[automation_run_rules.ExecutedNode]:
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


def _turn(node: automation_run_rules.ExecutedNode, ranks: Mapping[str, int]) -> tuple[object, ...]:
    """Ranks and iterations from the outermost loop inward, then the rank of the node itself."""
    turn: list[object] = []
    for step in node.scope_key.split("/") if node.scope_key else ():
        loop, _, index = step.rpartition(":")
        turn += [ranks.get(loop, len(ranks)), int(index) if index.isdigit() else 0]
    return (*turn, ranks.get(node.node_id, len(ranks)))


def align(
    run: Sequence[automation_run_rules.ExecutedNode],
    reference: Sequence[automation_run_rules.ExecutedNode],
) -> list[Pair]:
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
    run: Sequence[automation_run_rules.ExecutedNode],
    counterparts: dict[Place, automation_run_rules.ExecutedNode],
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
    if automation_run_rules.NodeStatus.SKIPPED in (node.status, counterpart.status):
        return [Aspect.STATUS] if node.status != counterpart.status else []
    differs = {Aspect.INPUT: node.input_digest != counterpart.input_digest}
    if (
        node.status not in automation_run_rules.OPEN_NODE
        and counterpart.status not in automation_run_rules.OPEN_NODE
    ):
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


class ComparedRun(Shape):
    """One of the two runs."""

    id: Id
    automation_version_id: Id
    version: int
    status: automation_run_rules.RunStatus
    source: automation_run_rules.RunSource
    created_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    error: str | None


class ValueDifference(Shape):
    """A path at which two values differ.

    `before` is the value of the reference and `after` that of the run, as JSON text; of long values
    the part that differs.
    """

    path: str
    change: ValueChange
    before: str | None = None
    after: str | None = None


class ValueComparison(Shape):
    """A value in both runs; without `complete` it has further differences than are listed."""

    differs: bool
    differences: list[ValueDifference]
    complete: bool


class ComparedNode(Shape):
    """A node in one of the runs; times in milliseconds, the first since the run began."""

    status: automation_run_rules.NodeStatus
    branch: str | None = None
    attempt: int
    started_after: float | None = None
    duration: float | None = None
    error: str | None = None
    reused: bool


class NodeComparison(Shape):
    """A node in one scope, in both runs or in one; `differs` names what is not the same."""

    node_id: str
    scope_key: str
    node_kind: str
    label: str | None = None
    run: ComparedNode | None = None
    reference: ComparedNode | None = None
    differs: list[Aspect]
    input: ValueComparison
    output: ValueComparison


class NodePlace(Shape):
    """A node in one scope, and what is not the same there."""

    node_id: str
    scope_key: str
    differs: list[Aspect]


class RunComparison(Shape):
    """A run beside a reference, node by node in the order of the graph.

    `firstDivergence` is the first node that differs. `trimmed` says that there are more nodes than
    are listed; nodes that differ were listed before others.
    """

    run: ComparedRun
    reference: ComparedRun
    same_version: bool
    trigger_payload: ValueComparison
    output: ValueComparison
    first_divergence: NodePlace | None = None
    nodes: list[NodeComparison]
    trimmed: bool


READ = 2_000
"""Nodes of each run that are aligned."""
SHOWN = 500
"""Pairs of nodes that are answered."""
EXPLAINED = 40
"""Pairs whose inputs and outputs are compared by path."""
DIFFERENCES = 50
"""Differences of one value that are shown."""

Values = Mapping[Place, history.NodeValues]
_EQUAL = ValueComparison(differs=False, differences=[], complete=True)
_UNEXPLAINED = ValueComparison(differs=True, differences=[], complete=False)


async def compare(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, reference_id: Id | None
) -> RunComparison:
    """A run beside another of its automation, by default the last that succeeded before it.

    Raises NotFoundError for a run that is not one of the automation, and ValidationError at `with`
    when none succeeded before.
    """
    run = await load_run(work, actor, automation_id, run_id)
    reference_id = reference_id or await history.last_success_before(work, run)
    if reference_id is None:
        message = "No earlier successful run found. Choose a run to compare with."
        raise ValidationError.at("with", message)
    reference = await load_run(work, actor, automation_id, reference_id)
    nodes = await history.executed_nodes(work, actor, run.id, READ + 1)
    counterparts = await history.executed_nodes(work, actor, reference.id, READ + 1)
    whole = _is_whole(run, nodes), _is_whole(reference, counterparts)
    graphs = [await _graph(work, run), await _graph(work, reference)]
    sides = (in_order(nodes[:READ], graphs[0]), in_order(counterparts[:READ], graphs[1]))
    aligned = [
        (pair, aspects(pair, run_is_whole=whole[0], reference_is_whole=whole[1]))
        for pair in align(*sides)
    ]
    pairs = _shown(aligned)
    ids = [run.automation_version_id, reference.automation_version_id]
    versions = await version_numbers(work, automation_id, ids)
    return RunComparison(
        run=_header(run, versions),
        reference=_header(reference, versions),
        same_version=run.graph_checksum == reference.graph_checksum,
        trigger_payload=_compared(reference.trigger_payload, run.trigger_payload),
        output=_compared(reference.output, run.output),
        first_divergence=next((_place(pair, differs) for pair, differs in pairs if differs), None),
        nodes=await _nodes(work, actor, run, reference, pairs, _labels(*graphs)),
        trimmed=len(pairs) < len(aligned) or max(len(nodes), len(counterparts)) > READ,
    )


Aligned = Sequence[tuple[Pair, list[Aspect]]]


def _is_whole(
    run: automation_run_rules.WholeRun, nodes: Sequence[automation_run_rules.ExecutedNode]
) -> bool:
    return run.status not in automation_run_rules.OPEN_RUN and len(nodes) <= READ


def _shown(aligned: Aligned) -> Aligned:
    """The pairs that an answer has room for: the ones that differ before the others."""
    if len(aligned) <= SHOWN:
        return aligned
    by_weight = sorted(range(len(aligned)), key=lambda index: not aligned[index][1])
    return [aligned[index] for index in sorted(by_weight[:SHOWN])]


def _place(pair: Pair, differs: list[Aspect]) -> NodePlace:
    return NodePlace(node_id=pair.place[0], scope_key=pair.place[1], differs=differs)


def _header(run: automation_run_rules.WholeRun, versions: Mapping[Id, int]) -> ComparedRun:
    names = [name for name in ComparedRun.model_fields if name != "version"]
    fields = {name: getattr(run, name) for name in names}
    return ComparedRun(**fields, version=versions[run.automation_version_id])


async def _nodes(
    work: UnitOfWork,
    actor: Actor,
    run: automation_run_rules.WholeRun,
    reference: automation_run_rules.WholeRun,
    pairs: Aligned,
    labels: Mapping[str, str],
) -> list[NodeComparison]:
    explained = [
        pair.place for pair, differs in pairs if {Aspect.INPUT, Aspect.OUTPUT} & {*differs}
    ][:EXPLAINED]
    values, counterparts = [
        {
            (row.node_id, row.scope_key): row
            for row in await history.node_values(work, actor, one.id, explained)
        }
        for one in (run, reference)
    ]
    return [
        NodeComparison(
            node_id=pair.place[0],
            scope_key=pair.place[1],
            node_kind=_kind(pair),
            label=labels.get(pair.place[0]),
            run=_side(pair.node, run.started_at),
            reference=_side(pair.counterpart, reference.started_at),
            differs=differs,
            input=_explained(Aspect.INPUT, pair, differs, counterparts, values),
            output=_explained(Aspect.OUTPUT, pair, differs, counterparts, values),
        )
        for pair, differs in pairs
    ]


async def _graph(work: UnitOfWork, run: automation_run_rules.WholeRun) -> JsonObject:
    stored = await stored_graph(work, run.automation_id, run.graph_checksum)
    return {} if stored is None else stored.graph


def _labels(graph: JsonObject, of_reference: JsonObject) -> Mapping[str, str]:
    nodes = [*(of_reference.get("nodes") or []), *(graph.get("nodes") or [])]
    return {node["id"]: node["label"] for node in nodes if node.get("label")}


def _kind(pair: Pair) -> str:
    node = pair.node or pair.counterpart
    assert node is not None, "one of the two is there"
    return node.node_kind


def _side(
    node: automation_run_rules.ExecutedNode | None, began: datetime | None
) -> ComparedNode | None:
    if node is None:
        return None
    return ComparedNode(
        status=node.status,
        branch=None if node.reused else node.case_key or node.outcome,
        attempt=node.attempt,
        started_after=_milliseconds(began, node.started_at),
        duration=_milliseconds(node.started_at, node.completed_at),
        error=node.error,
        reused=node.reused,
    )


def _milliseconds(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None:
        return None
    return round((end - start).total_seconds() * 1000, 3)


def _explained(
    aspect: Aspect, pair: Pair, differs: list[Aspect], before: Values, after: Values
) -> ValueComparison:
    """The comparison of an input or output, by path as far as both were read."""
    if aspect not in differs:
        return _EQUAL
    if pair.place not in before or pair.place not in after:
        return _UNEXPLAINED
    old, new = (getattr(values[pair.place], aspect.value) for values in (before, after))
    digests = [getattr(node, f"{aspect.value}_digest") for node in (pair.counterpart, pair.node)]
    # Null, though it has a digest: it was too large to be read.
    if [old is None, new is None] != [digest is None for digest in digests]:
        return _UNEXPLAINED
    return _compared(old, new)


def _compared(before: object, after: object) -> ValueComparison:
    listed, is_complete = differences(before, after, DIFFERENCES)
    return ValueComparison(
        differs=bool(listed) or (not is_complete and before != after),
        differences=[ValueDifference.model_validate(one) for one in listed],
        complete=is_complete,
    )

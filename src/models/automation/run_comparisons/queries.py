"""Two runs side by side on the wire, and reading them; every query names the workspace."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from models.automation.automation_runs.history import (
    NodeValues,
    executed_nodes,
    last_success_before,
    node_values,
)
from models.automation.automation_runs.queries import load_run
from models.automation.automation_runs.rules import (
    OPEN_RUN,
    ExecutedNode,
    NodeStatus,
    RunSource,
    RunStatus,
    WholeRun,
)
from models.automation.automations.graphs import stored_graph
from models.automation.automations.runnable_versions import version_numbers
from models.automation.run_comparisons.rules import (
    Aspect,
    Pair,
    Place,
    ValueChange,
    align,
    aspects,
    differences,
    in_order,
)
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject, Moment, Shape
from runtime.database import UnitOfWork
from runtime.errors import ValidationError


class ComparedRun(Shape):
    """One of the two runs."""

    id: Id
    automation_version_id: Id
    version: int
    status: RunStatus
    source: RunSource
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

    status: NodeStatus
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

Values = Mapping[Place, NodeValues]
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
    reference_id = reference_id or await last_success_before(work, run)
    if reference_id is None:
        message = "No earlier successful run found. Choose a run to compare with."
        raise ValidationError.at("with", message)
    reference = await load_run(work, actor, automation_id, reference_id)
    nodes = await executed_nodes(work, actor, run.id, READ + 1)
    counterparts = await executed_nodes(work, actor, reference.id, READ + 1)
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


def _is_whole(run: WholeRun, nodes: Sequence[ExecutedNode]) -> bool:
    return run.status not in OPEN_RUN and len(nodes) <= READ


def _shown(aligned: Aligned) -> Aligned:
    """The pairs that an answer has room for: the ones that differ before the others."""
    if len(aligned) <= SHOWN:
        return aligned
    by_weight = sorted(range(len(aligned)), key=lambda index: not aligned[index][1])
    return [aligned[index] for index in sorted(by_weight[:SHOWN])]


def _place(pair: Pair, differs: list[Aspect]) -> NodePlace:
    return NodePlace(node_id=pair.place[0], scope_key=pair.place[1], differs=differs)


def _header(run: WholeRun, versions: Mapping[Id, int]) -> ComparedRun:
    names = [name for name in ComparedRun.model_fields if name != "version"]
    fields = {name: getattr(run, name) for name in names}
    return ComparedRun(**fields, version=versions[run.automation_version_id])


async def _nodes(
    work: UnitOfWork,
    actor: Actor,
    run: WholeRun,
    reference: WholeRun,
    pairs: Aligned,
    labels: Mapping[str, str],
) -> list[NodeComparison]:
    explained = [
        pair.place for pair, differs in pairs if {Aspect.INPUT, Aspect.OUTPUT} & {*differs}
    ][:EXPLAINED]
    values, counterparts = [
        {
            (row.node_id, row.scope_key): row
            for row in await node_values(work, actor, one.id, explained)
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


async def _graph(work: UnitOfWork, run: WholeRun) -> JsonObject:
    stored = await stored_graph(work, run.automation_id, run.graph_checksum)
    return {} if stored is None else stored.graph


def _labels(graph: JsonObject, of_reference: JsonObject) -> Mapping[str, str]:
    nodes = [*(of_reference.get("nodes") or []), *(graph.get("nodes") or [])]
    return {node["id"]: node["label"] for node in nodes if node.get("label")}


def _kind(pair: Pair) -> str:
    node = pair.node or pair.counterpart
    assert node is not None, "one of the two is there"
    return node.node_kind


def _side(node: ExecutedNode | None, began: datetime | None) -> ComparedNode | None:
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

"""Overviews of runs for their pages: the graph, and the progress of each node."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic import Field

from models.automation.automation_runs.calls import called_run_id
from models.automation.automation_runs.execution import failure_run_id
from models.automation.automation_runs.node_queries import progress, waits
from models.automation.automation_runs.queries import caller_of, metadata_of, worker_metadata
from models.automation.automation_runs.rules import OPEN_NODE, NodeStatus, RunRow, RunStatus
from models.automation.automation_runs.shapes import AutomationRunShape
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations import queries as automation_queries
from models.automation.automations.rules.graph.kinds import NODE_KINDS, CostClass, NodeKind
from models.automation.automations.rules.planner.plan import Plan
from models.content.items.queries import PlacementOf, closed_items
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject, Moment, Shape
from runtime.database import UnitOfWork


class Point(Shape):
    x: float
    y: float


class GraphNodeShape(Shape):
    """One node of the graph; `position` is where its author put it."""

    id: str
    kind: str
    label: str | None = None
    disabled: bool = False
    position: Point | None = None


class GraphEdgeShape(Shape):
    id: str
    source: str = Field(alias="from")
    target: str = Field(alias="to")
    outcome: str
    case_key: str | None = None


class RunGraph(Shape):
    """The graph the run executes, frozen with its version; what nodes are given is not in it."""

    nodes: list[GraphNodeShape]
    edges: list[GraphEdgeShape]


class Iterations(Shape):
    """The progress of a loop; `total` is absent while the number of iterations is unknown."""

    done: int
    total: int | None


class NodeProgress(Shape):
    """A node over all its scopes: how many are in each status, and the most relevant status."""

    node_id: str
    status: NodeStatus
    counts: dict[NodeStatus, int]
    attempt: int
    started_at: Moment | None
    completed_at: Moment | None
    iterations: Iterations | None = None


class RunRelation(StrEnum):
    """The relation of another run to this one."""

    PARENT = "parent"
    CHILD = "child"
    REPLAYED = "replayed"
    FAILURE = "failure"
    """It was started because this one failed."""


class RunLink(Shape):
    """Another run, of an automation that the caller sees."""

    relation: RunRelation
    run_id: Id
    automation_label: str
    status: RunStatus


class AutomationName(Shape):
    id: Id
    label: str


class RunOverview(Shape):
    """A run with the graph it executes and how far each node has come; others are not there."""

    run: AutomationRunShape
    automation: AutomationName
    version: int
    graph: RunGraph
    nodes: list[NodeProgress]
    links: list[RunLink]


class RunState(Shape):
    """The changing part of a run that is watched; `metadata` adds to that of the run."""

    status: RunStatus
    started_at: Moment | None
    completed_at: Moment | None
    error: str | None
    waiting: list[JsonObject]
    metadata: JsonObject


class RunChange(Shape):
    """The data of one `state` event: the run, and the nodes that changed since the last one."""

    run: RunState
    nodes: list[NodeProgress]


_TELLING = (
    NodeStatus.RUNNING,
    NodeStatus.WAITING,
    NodeStatus.QUEUED,
    NodeStatus.FAILED,
    NodeStatus.CANCELLED,
    NodeStatus.SUCCEEDED,
    NodeStatus.SKIPPED,
)


def overall(counts: Mapping[NodeStatus, int]) -> NodeStatus:
    """The status of a node over its scopes: an open one, else the worst end, else the best."""
    return next(status for status in _TELLING if counts.get(status))


LINKS = 50
"""Related runs that an overview names."""

_run = automation_run.c
_node = node_run.c

visible = PlacementOf(
    automation_queries.placed_automations()
    .join(automation_run, _run.automation_id == automation_queries.AUTOMATION.id)
    .where(
        _run.id == sa.bindparam("id", type_=sa.Uuid),
        _run.workspace_id == automation_queries.AUTOMATION.workspace_id,
    )
)
"""The placement of a run's automation: `await visible(work, workspace_ids, run_id, user_id)`."""


class _OverviewRow(RunRow, Protocol):
    label: str
    version: int
    graph: JsonObject


class NodeCount(Protocol):
    """The node runs of a node that have one status."""

    node_id: str
    status: str
    number: int
    attempt: int
    started_at: datetime | None
    completed_at: datetime | None


async def overview(work: UnitOfWork, actor: Actor, run_id: Id) -> RunOverview:
    """The content of the page of a run when it is opened. Raises NotFoundError."""
    row = await work.one(
        sa.select(
            automation_run,
            automation_queries.AUTOMATION.label,
            automation_queries.VERSION.version,
            automation_queries.GRAPH.graph,
        )
        .select_from(automation_run)
        .join(*automation_queries.automation_of(automation_run))
        .join(*automation_queries.version_of(automation_run))
        .join(*automation_queries.graph_of(automation_run))
        .where(_run.workspace_id == actor.workspace_id, _run.id == run_id),
        "run",
        of=_OverviewRow,
    )
    return RunOverview(
        run=_run_shape(row, await _metadata(work, row)),
        automation=AutomationName(id=row.automation_id, label=row.label),
        version=row.version,
        graph=RunGraph.model_validate(row.graph),
        nodes=await _progress(
            work, actor.workspace_id, run_id, await loops_of(work, actor.workspace_id, run_id)
        ),
        links=await _links(work, actor, row),
    )


async def named(work: UnitOfWork, actor: Actor, run_id: Id) -> AutomationName:
    """The automation of a run. Raises NotFoundError."""
    row = await work.one(
        sa.select(automation_queries.AUTOMATION.id, automation_queries.AUTOMATION.label)
        .select_from(automation_run)
        .join(*automation_queries.automation_of(automation_run))
        .where(_run.workspace_id == actor.workspace_id, _run.id == run_id),
        "run",
    )
    return AutomationName.model_validate(row)


async def state(
    work: UnitOfWork, workspace_id: Id, run_id: Id, loops: Collection[str]
) -> RunChange | None:
    """The progress of a run and each of its nodes; None when the run is gone."""
    row = await work.first(
        sa.select(
            _run.id,
            _run.workspace_id,
            _run.status,
            _run.started_at,
            _run.completed_at,
            _run.error,
            _run.created_at,
        ).where(_run.workspace_id == workspace_id, _run.id == run_id)
    )
    if row is None:
        return None
    nodes = await _progress(work, workspace_id, run_id, loops)
    any_waits = any(NodeStatus.WAITING in node.counts for node in nodes)
    run = RunState(
        status=row.status,
        started_at=row.started_at,
        completed_at=row.completed_at,
        error=row.error,
        waiting=(await waits(work, [row]))[row.id] if any_waits else [],
        metadata=await worker_metadata(work, row),
    )
    return RunChange(run=run, nodes=nodes)


async def _progress(
    work: UnitOfWork, workspace_id: Id, run_id: Id, loops: Collection[str]
) -> list[NodeProgress]:
    rows = await work.rows(
        sa.select(
            _node.node_id,
            _node.status,
            sa.func.count().label("number"),
            sa.func.max(_node.attempt).label("attempt"),
            sa.func.min(_node.started_at).label("started_at"),
            sa.func.max(_node.completed_at).label("completed_at"),
        )
        .where(_node.workspace_id == workspace_id, _node.run_id == run_id)
        .group_by(_node.node_id, _node.status)
        .order_by(_node.node_id),
        of=NodeCount,
    )
    turns = await iterations(work, workspace_id, run_id, loops)
    by_node: dict[str, list[NodeCount]] = {}
    for row in rows:
        by_node.setdefault(row.node_id, []).append(row)
    return [
        _node_progress(node_id, found, turns.get(node_id)) for node_id, found in by_node.items()
    ]


def _node_progress(
    node_id: str, rows: Sequence[NodeCount], turns: Iterations | None
) -> NodeProgress:
    counts = {NodeStatus(row.status): row.number for row in rows}
    status = overall(counts)
    starts = [row.started_at for row in rows if row.started_at is not None]
    ends = [row.completed_at for row in rows if row.completed_at is not None]
    is_open = status in {NodeStatus.RUNNING, NodeStatus.WAITING, NodeStatus.QUEUED}
    return NodeProgress(
        node_id=node_id,
        status=status,
        counts=counts,
        attempt=max(row.attempt for row in rows),
        started_at=min(starts, default=None),
        completed_at=None if is_open else max(ends, default=None),
        iterations=turns if turns is None else _known(turns, is_open=is_open),
    )


def _known(turns: Iterations, *, is_open: bool) -> Iterations:
    """An open loop has an open iteration, although between two nodes no node run shows it."""
    if is_open and turns.total:
        return Iterations(done=min(turns.done, turns.total - 1), total=turns.total)
    return turns


async def _links(work: UnitOfWork, actor: Actor, run: RunRow) -> list[RunLink]:
    """The runs that led to this one, and those it led to, as far as the caller sees them."""
    relations = _relations(run)
    run_ids = [*relations, *await _asked_for(work, run)]
    rows = await work.rows(
        sa.select(_run.id, _run.status, automation_queries.AUTOMATION.label)
        .select_from(automation_run)
        .join(*automation_queries.automation_of(automation_run))
        .where(
            _run.workspace_id == actor.workspace_id,
            sa.or_(_run.parent_run_id == run.id, _run.id.in_(run_ids)),
            automation_queries.AUTOMATION.item_id.not_in(sa.select(closed_items(actor).c.id)),
        )
        .order_by(_run.id)
        .limit(LINKS)
    )
    return [
        RunLink(
            relation=relations.get(row.id, RunRelation.CHILD),
            run_id=row.id,
            automation_label=row.label,
            status=row.status,
        )
        for row in rows
    ]


async def _asked_for(work: UnitOfWork, run: RunRow) -> list[Id]:
    """The runs that nodes of a run called, whether they wait for them or not."""
    rows = await work.rows(
        sa.select(_node.node_id, _node.scope_key)
        .where(
            _node.workspace_id == run.workspace_id,
            _node.run_id == run.id,
            _node.node_kind == NodeKind.CALL_AUTOMATION,
            _node.started_at.is_not(None),
        )
        .order_by(_node.started_at, _node.node_id, _node.scope_key)
        .limit(LINKS)
    )
    return [called_run_id(run.id, row.node_id, row.scope_key) for row in rows]


def _relations(run: RunRow) -> Mapping[Id, RunRelation]:
    """The related runs whose ids are known from the run's own row."""
    named = {
        caller_of(run): RunRelation.PARENT,
        run.replay_of_run_id: RunRelation.REPLAYED,
        failure_run_id(run.id): RunRelation.FAILURE,
    }
    return {run_id: relation for run_id, relation in named.items() if run_id is not None}


async def _metadata(work: UnitOfWork, run: RunRow) -> JsonObject:
    return {
        **(await metadata_of(work, [run]))[run.id],
        "progress": await progress(work, run),
        **await worker_metadata(work, run),
    }


def _run_shape(row: RunRow, metadata: JsonObject) -> AutomationRunShape:
    names = [name for name in AutomationRunShape.model_fields if name != "metadata"]
    fields = {name: getattr(row, name) for name in names}
    return AutomationRunShape(**fields, metadata=metadata)


_ITEMS = sa.case(
    (
        sa.func.jsonb_typeof(_node.input["items"]) == "array",
        sa.func.jsonb_array_length(_node.input["items"]),
    )
)
"""The number of items a loop was given; null for one without a list."""


async def loops_of(work: UnitOfWork, workspace_id: Id, run_id: Id) -> Collection[str]:
    """The ids of the loops in a run's graph."""
    document = await work.scalar(
        sa.select(automation_queries.GRAPH.plan)
        .select_from(automation_run)
        .join(*automation_queries.graph_of(automation_run))
        .where(automation_run.c.workspace_id == workspace_id, automation_run.c.id == run_id)
    )
    plan = None if document is None else Plan.from_json(document)
    return [
        node.id
        for node in (() if plan is None else plan.nodes)
        if NODE_KINDS[NodeKind(node.kind)].cost is CostClass.LOOP
    ]


async def iterations(
    work: UnitOfWork, workspace_id: Id, run_id: Id, loops: Collection[str]
) -> dict[str, Iterations]:
    """The progress of the opened loops, by id; an inner loop counts all its iterations."""
    if not loops:
        return {}
    rows = await work.rows(
        sa.select(
            _node.node_id,
            sa.func.sum(_ITEMS).label("total"),
        )
        .where(
            _node.workspace_id == workspace_id,
            _node.run_id == run_id,
            _node.node_id.in_(list(loops)),
        )
        .group_by(_node.node_id)
    )
    return {
        row.node_id: Iterations(
            done=await _done(work, workspace_id, run_id, row.node_id),
            total=None if row.total is None else int(row.total),
        )
        for row in rows
    }


async def _done(work: UnitOfWork, workspace_id: Id, run_id: Id, loop: str) -> int:
    """The number of iterations that began and have no open node run.

    An iteration between two nodes counts, too.
    """
    inside = rf"^(?:.*/)?{re.escape(loop)}:\d+"
    iteration: Any = sa.func.substring(_node.scope_key, inside)
    scopes = (
        sa.select(iteration)
        .where(
            _node.workspace_id == workspace_id,
            _node.run_id == run_id,
            _node.scope_key.regexp_match(inside),
        )
        .group_by(iteration)
        .having(~sa.func.bool_or(_node.status.in_(OPEN_NODE)))
        .subquery()
    )
    return int(await work.scalar(sa.select(sa.func.count()).select_from(scopes)))

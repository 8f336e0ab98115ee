"""Changes of open runs from outside: cancelled with all that hangs on them, or moved.

Runs that wait or are queued are moved to a graph in which a field has another key (ADR 0170). The
plan of that graph is the same, so that their executions continue as they are. Stored values get the
new key, too: the payload, and the outputs that later nodes read. Processes keep runs in memory; the
gate of nodes tells them (`node_writes`).
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from models.automation.automation_runs import rules, slots
from models.automation.automation_runs.node_writes import close_nodes
from models.automation.automation_runs.tables import (
    AUTOMATION_RUNS,
    AutomationRun,
    automation_run,
    node_run,
)
from models.automation.automations import queries as automation_queries
from models.automation.automations import references
from models.automation.automations.graphs import store_like, stored_graph
from models.automation.automations.rules.graph import references as graph_references
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.typed_reads import with_keys
from models.core.lifecycle import commands as lifecycle
from models.core.references.rules import Sought, Subject, UnknownPlaceError, rewritten
from models.sources.outbound_limits.turns import leave_lines
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.temporal.workflow_kinds import WorkflowKind

Slot = tuple[Id, str]
"""An automation and a concurrency key."""

_run = automation_run.c


async def cancel_runs(
    work: UnitOfWork,
    workspace_id: Id,
    run_ids: Collection[Id],
    *,
    error: str | None = None,
    keeping: Slot | None = None,
) -> list[Id]:
    """Cancel the open ones among these runs, and the runs they wait for. They stay cancelled.

    Their nodes are closed, their executions cancelled, and their slots given to waiting runs,
    except the slots of the key `keeping`. Returns every run that was cancelled.
    """
    locked_ids = await _held_tree(work, workspace_id, run_ids)
    if not locked_ids:
        return []
    # The locks may have taken time to get: no node started meanwhile may seem to start after this.
    work.now = utc_now()
    rows = await work.rows(
        AUTOMATION_RUNS.moving(rules.RunStatus.CANCELLED)
        .where(_run.id.in_(locked_ids))
        .values(completed_at=work.now, error=error)
        .returning(
            _run.id,
            _run.automation_id,
            _run.concurrency_key,
            _run.admitted_at,
            _run.parent_run_id,
            _run.source,
        ),
        of=AutomationRun,
    )
    cancelled = sorted(row.id for row in rows)
    work.answered.update(cancelled)
    await close_nodes(work, cancelled)
    await runs_ended(work, workspace_id, cancelled)
    started = [row.id for row in rows if _may_have_started(row)]
    await lifecycle.cancel_executions(work, WorkflowKind.AUTOMATION_RUN, workspace_id, started)
    await leave_lines(work, workspace_id, started)
    freed = {(row.automation_id, row.concurrency_key) for row in rows if row.concurrency_key}
    for automation_id, key in sorted(freed - {keeping}):
        await slots.hand_on(work, automation_id, key)
    return cancelled


async def cancel_children(work: UnitOfWork, workspace_id: Id, run_id: Id) -> None:
    """Cancel the runs, of automations and of actions, that a run which has ended waited for."""
    await runs_ended(work, workspace_id, [run_id])
    children = await work.rows(
        sa.select(_run.id).where(
            _run.workspace_id == workspace_id,
            _run.parent_run_id == run_id,
            _run.status.in_(rules.OPEN_RUN),
        )
    )
    if children:
        error = "The calling run has ended."
        await cancel_runs(work, workspace_id, [row.id for row in children], error=error)


async def _held_tree(work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]) -> list[Id]:
    """The open runs among these and below them, all locked.

    A run whose row is locked gets no more children: a query that finds no new run is the last.
    """
    locked_ids: set[Id] = set()
    while fresh := await _by_depth(work, open_tree(workspace_id, run_ids), locked_ids):
        for run_ids_there in fresh:
            await slots.lock_of_runs(work, run_ids_there)
            rows = sa.select(_run.id).where(_run.id.in_(run_ids_there)).order_by(_run.id)
            await work.rows(rows.with_for_update())
            locked_ids.update(run_ids_there)
    return sorted(locked_ids)


async def _by_depth(work: UnitOfWork, tree: sa.Select[Any], held: Collection[Id]) -> list[list[Id]]:
    """The runs of a tree that are not held yet, callers before the runs they call.

    They are locked in this order: a run that calls, or ends, holds its row when it comes to ask
    for the slots of those it calls.
    """
    levels: dict[int, list[Id]] = {}
    for row in await work.rows(tree):
        if row.id not in held:
            levels.setdefault(row.depth, []).append(row.id)
    return [sorted(levels[depth]) for depth in sorted(levels)]


def open_tree(workspace_id: Id, run_ids: Collection[Id]) -> sa.Select[Any]:
    """The open runs among these, with all below them, and the number of runs that led to each."""
    top = (
        sa.select(_run.id, sa.func.cardinality(_run.chain).label("depth"))
        .where(
            _run.workspace_id == workspace_id,
            _run.id.in_(sorted(run_ids)),
            _run.status.in_(rules.OPEN_RUN),
        )
        .cte("tree", recursive=True)
    )
    child = automation_run.alias("child")
    tree = top.union(
        sa.select(child.c.id, sa.func.cardinality(child.c.chain)).where(
            child.c.workspace_id == workspace_id,
            child.c.parent_run_id == top.c.id,
            child.c.status.in_(rules.OPEN_RUN),
        )
    )
    return sa.select(tree.c.id, tree.c.depth)


def _may_have_started(row: AutomationRun) -> bool:
    """True when a run may have an execution.

    A run that waits for a slot has one if another run, or the fire of a schedule, waits for it.
    """
    admitted = row.admitted_at is not None or row.parent_run_id is not None
    return admitted or row.source == rules.RunSource.SCHEDULE


EndHandler = Callable[[UnitOfWork, Id, Collection[Id]], Awaitable[None]]
"""Takes a workspace and runs of it."""

_HANDLERS: list[EndHandler] = []


def on_run_end(handler: EndHandler) -> None:
    """Call `handler` in the transaction of each end; registering it again changes nothing.

    A resource above registers what it then does; `models.registrations` lists them.
    """
    if handler not in _HANDLERS:
        _HANDLERS.append(handler)


async def runs_ended(work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]) -> None:
    """Call the handlers for runs of a workspace that have ended."""
    for handler in _HANDLERS:
        await handler(work, workspace_id, run_ids)


MOST_RUNS = 1_000
"""Runs of one graph that are moved in one transaction."""
_RUNS_AT_ONCE = 10
"""Runs whose stored values are in memory at a time: payloads and outputs may be large."""
_OTHER_VALUES = ("mocks", "replays", "reused", "scope")
"""Options by which a run has values of another run, or of its caller, beside its own."""

_node = node_run.c
_RESTING = frozenset(
    {NodeKind.APPROVAL, NodeKind.CALL_AUTOMATION, NodeKind.DELAY, NodeKind.WAIT_EVENT}
)
"""Nodes that read nothing of their graph while they wait, but for the filter of an event."""


class _WaitingRun(Protocol):
    id: Id
    trigger_payload: JsonObject
    options: JsonObject


async def graphs_of_open_runs(
    work: UnitOfWork, actor: Actor, texts: Collection[str]
) -> Sequence[references.FoundGraph]:
    """The graphs of open runs that have one of these texts.

    A run keeps the graph it was accepted with: it can name what no version names any more.
    """
    run = automation_run.c
    graph = (run.automation_id, run.automation_version_id, run.graph_checksum)
    of_graph = (
        sa.select(*graph, sa.func.count().label("runs"))
        .where(run.workspace_id == actor.workspace_id, run.status.in_(rules.OPEN_RUN))
        .group_by(*graph)
        .subquery()
    )
    statement = (
        sa.select(
            of_graph.c.automation_id,
            automation_queries.AUTOMATION.label,
            automation_queries.AUTOMATION.item_id,
            automation_queries.VERSION.id.label("version_id"),
            automation_queries.VERSION.version,
            sa.literal("open").label("state"),
            of_graph.c.runs,
            automation_queries.GRAPH.checksum,
            automation_queries.GRAPH.trigger_config,
        )
        .join(*automation_queries.automation_of(of_graph))
        .join(*automation_queries.version_of(of_graph))
        .join(*automation_queries.graph_of(of_graph))
        .where(references.has_one_of(texts))
        .order_by(
            automation_queries.AUTOMATION.label,
            of_graph.c.automation_id,
            automation_queries.VERSION.version,
        )
    )
    return await work.rows(statement, of=references.FoundGraph)


async def move_waiting_runs(work: UnitOfWork, actor: Actor, sought: Sought, key: str) -> None:
    """Have the open runs whose graphs name a field by its key name it by another one.

    Raises NotWaitingError when one of them does more than wait, and for more than `MOST_RUNS`.
    """
    forms = await references.forms_of(work, actor, sought)
    texts = references.texts_of(sought, forms)
    for graph in await graphs_of_open_runs(work, actor, texts):
        row = await stored_graph(work, graph.automation_id, graph.checksum)
        assert row is not None, "what was accepted is kept as long as its run"
        config, content = graph.trigger_config, row.graph
        places = [
            reference
            for reference in graph_references.graph_references(config, content, forms)
            if sought.matches(reference.subject) and not reference.by_id
        ]
        if not places:
            continue
        run_ids = await _hold(work, graph, {reference.node for reference in places})
        try:
            new = rewritten({"triggerConfig": config, "graph": content}, places, key)
        except UnknownPlaceError:
            raise NotWaitingError(graph, "has an expression that cannot be rewritten") from None
        parts = (graph.checksum, new["triggerConfig"], new["graph"])
        checksum = await store_like(work, actor.workspace_id, graph.automation_id, *parts)
        types = graph_references.stored_types(config, content, forms)
        renaming = _Renaming(sought.subject, key, types)
        for start in range(0, len(run_ids), _RUNS_AT_ONCE):
            part = run_ids[start : start + _RUNS_AT_ONCE]
            await _write(work, graph, checksum, part, renaming)
            await _write_outputs(work, part, content, renaming)


class NotWaitingError(ConflictError):
    """An open run names the field and does more than wait, or there are too many of them."""

    def __init__(self, graph: references.FoundGraph, reason: str, run_id: Id | None = None) -> None:
        super().__init__("Open runs use the field and are not only waiting. Wait until they end.")
        self.automation_id = graph.automation_id
        self.run_id = run_id
        self.reason = reason


async def _hold(
    work: UnitOfWork, graph: references.FoundGraph, nodes: Collection[str]
) -> Sequence[Id]:
    """The open runs of a graph, locked. Raises NotWaitingError when one cannot be moved.

    A run whose row is locked is about to write a node. To wait for it could be a deadlock: the
    node may wait for records that this transaction changes.
    """
    open_ones = sa.select(_run.id).where(*_executing(graph)).limit(MOST_RUNS)
    runs = await work.rows(open_ones.with_for_update(key_share=True, skip_locked=True))
    refusing = await work.first(_refusing(graph, nodes).limit(1))
    if refusing is not None:
        raise NotWaitingError(graph, refusing.reason, refusing.id)
    if len(runs) < graph.runs:
        raise NotWaitingError(graph, _MANY if graph.runs > MOST_RUNS else _LOCKED)
    return [run.id for run in runs]


def _executing(graph: references.FoundGraph) -> Sequence[sa.ColumnElement[bool]]:
    """The conditions of the open runs of a graph."""
    return (
        _run.automation_id == graph.automation_id,
        _run.automation_version_id == graph.version_id,
        _run.graph_checksum == graph.checksum,
        _run.status.in_(rules.OPEN_RUN),
    )


def _refusing(graph: references.FoundGraph, nodes: Collection[str]) -> sa.Select[Any]:
    """The open runs of a graph that cannot be moved, each with the reason; the oldest first.

    `nodes` name the field.
    """
    has_others = _run.options.has_any(sa.literal(_OTHER_VALUES, ARRAY(sa.Text)))
    rests = sa.and_(_node.status == rules.NodeStatus.WAITING, _node.node_kind.in_(_RESTING))
    reads = sa.and_(_node.node_kind == NodeKind.WAIT_EVENT, _node.node_id.in_(nodes))
    loops = _node.node_kind == NodeKind.FOR_EACH
    busy = (
        sa.select(sa.case((reads, _FILTERS), (loops, _LOOPS), else_=_BUSY))
        .where(_node.run_id == _run.id, _node.status.in_(rules.OPEN_NODE), sa.or_(~rests, reads))
        .limit(1)
        .scalar_subquery()
    )
    is_running = _run.status == rules.RunStatus.RUNNING
    reason = sa.case((has_others, _OTHERS), (is_running, _BUSY), else_=busy)
    return (
        sa.select(_run.id, reason.label("reason"))
        .where(*_executing(graph), reason.is_not(None))
        .order_by(_run.created_at, _run.id)
    )


@dataclass(frozen=True, slots=True)
class ImmovableRun:
    """An open run that a rename cannot move."""

    id: Id
    automation_id: Id
    label: str
    reason: str


async def immovable_runs(
    work: UnitOfWork, actor: Actor, sought: Sought, automation_ids: Collection[Id], most: int
) -> Sequence[ImmovableRun]:
    """The open runs of these automations that keep a field from being renamed, as of now."""
    forms = await references.forms_of(work, actor, sought)
    graphs = await graphs_of_open_runs(work, actor, references.texts_of(sought, forms))
    definitions = await references.definitions_of(work, actor, graphs, forms)
    runs: list[ImmovableRun] = []
    for graph, definition in zip(graphs, definitions, strict=True):
        named = [one for one in definition.references if sought.matches(one.subject)]
        nodes = {one.node for one in named if not one.by_id}
        if nodes and graph.automation_id in automation_ids:
            rows = await work.rows(_refusing(graph, nodes).limit(most - len(runs)))
            own = (graph.automation_id, graph.label)
            runs += (ImmovableRun(row.id, *own, row.reason) for row in rows)
    return runs


_OTHERS = "has values of another run, of its caller or of a test"
_BUSY = "executes a node"
_FILTERS = "waits for an event whose filter names the field"
_LOOPS = "is in a loop"
_LOCKED = "has a run that is about to execute a node"
_MANY = f"has more than {MOST_RUNS:,} open runs"


class _Renaming:
    """A key that becomes another one in the stored values of runs."""

    def __init__(self, subject: Subject, new: str, types: graph_references.StoredTypes) -> None:
        self._names = (subject.id, {subject.key: new})
        self._types = types

    def payload(self, value: JsonObject) -> JsonObject:
        return cast("JsonObject", with_keys(value, self._types.payload, *self._names))

    def output(self, node_id: str, value: JsonObject) -> JsonObject:
        return cast("JsonObject", with_keys(value, self._types.output(node_id), *self._names))

    def options(self, value: JsonObject) -> JsonObject:
        """The options of a run, which may pin outputs."""
        if not (pinned := value.get("pinned")):
            return value
        return {**value, "pinned": {one: self.output(one, pinned[one]) for one in pinned}}

    def knows(self, node_id: str) -> bool:
        """True when the output of a node may have the key."""
        return self._types.output(node_id) is not None


async def _write(
    work: UnitOfWork,
    graph: references.FoundGraph,
    checksum: str,
    run_ids: Sequence[Id],
    renaming: _Renaming,
) -> None:
    """Have runs execute another graph; they are runs of the version that has it, if one does."""
    version_id = await work.scalar(
        sa.select(automation_queries.VERSION.id)
        .where(
            automation_queries.VERSION.automation_id == graph.automation_id,
            automation_queries.VERSION.checksum == checksum,
        )
        .order_by(automation_queries.VERSION.version.desc())
        .limit(1)
    )
    columns = (_run.id, _run.trigger_payload, _run.options)
    runs = await work.rows(sa.select(*columns).where(_run.id.in_(run_ids)), of=_WaitingRun)
    statement = (
        sa.update(automation_run)
        .where(_run.id == sa.bindparam("moved_id"))
        .values(
            graph_checksum=checksum,
            automation_version_id=version_id or graph.version_id,
            trigger_payload=sa.bindparam("payload", type_=JSONB),
            options=sa.bindparam("chosen", type_=JSONB),
        )
    )
    rows = [
        {
            "moved_id": run.id,
            "payload": renaming.payload(run.trigger_payload),
            "chosen": renaming.options(run.options),
        }
        for run in runs
    ]
    await work.execute(statement, rows)


async def _write_outputs(
    work: UnitOfWork, run_ids: Sequence[Id], graph: JsonObject, renaming: _Renaming
) -> None:
    """Write the outputs of nodes that may have the key anew."""
    nodes = [node["id"] for node in graph["nodes"] if renaming.knows(node["id"])]
    place = (_node.run_id, _node.node_id, _node.scope_key)
    outputs = await work.rows(
        sa.select(*place, _node.output).where(
            _node.run_id.in_(run_ids), _node.node_id.in_(nodes), _node.output.is_not(None)
        )
    )
    if not outputs:
        return
    statement = (
        sa.update(node_run)
        .where(*(column == sa.bindparam(f"of_{column.name}") for column in place))
        .values(output=sa.bindparam("renamed", type_=JSONB))
    )
    rows = [
        {
            "of_run_id": row.run_id,
            "of_node_id": row.node_id,
            "of_scope_key": row.scope_key,
            "renamed": renaming.output(row.node_id, row.output),
        }
        for row in outputs
    ]
    await work.execute(statement, rows)

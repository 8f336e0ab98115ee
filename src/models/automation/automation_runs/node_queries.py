"""Reading the node runs of a run, and the nodes it starts with before they begin."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Protocol

import sqlalchemy as sa

from models.automation.automation_runs import rules, shapes
from models.automation.automation_runs.run_header import FirstNode, changes_start, first_nodes
from models.automation.automation_runs.tables import (
    AutomationRun,
    NodeRun,
    NodeRunAttempt,
    automation_run,
    node_run,
    node_run_attempt,
)
from models.automation.automations.graphs import number_of_nodes, stored_plan
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.planner.plan import Plan
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.pagination import PageRequest, carried_rows, within_budget
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.postgresql.statements import PreparedStatement

SHOWN = 1_000
"""Node runs that the answer about one run holds at most; the rest is paged."""
MAX_WAITING = 100
"""Waits that a run's metadata lists."""

_run = automation_run.c
_node = node_run.c
BEGAN: sa.ColumnElement[Any] = sa.func.coalesce(_node.started_at, _node.completed_at)
"""The time a node run was inserted. It never changes, so that pages are stable."""
_ORDER = (BEGAN, _node.node_id, _node.scope_key)
_HEAVY = ("input", "output")

_IMPORTANCE = sa.case(
    (
        _node.status
        == sa.func.any(sa.literal([*rules.OPEN_NODE, rules.NodeStatus.FAILED], sa.ARRAY(sa.Text))),
        0,
    ),
    (_node.scope_key == "", 1),
    else_=2,
)
_SHOWN = PreparedStatement(
    within_budget(
        sa.select(node_run).where(
            _node.workspace_id == sa.bindparam("workspace_id"),
            _node.run_id == sa.bindparam("run_id"),
        ),
        (_IMPORTANCE, *_ORDER),
        SHOWN + 1,
        _HEAVY,
    ),
    NodeRun,
)

_WAITING = (
    sa.select(_node.node_id, _node.scope_key, _node.node_kind, _node.due_at, BEGAN.label("began"))
    .where(
        _node.workspace_id == _run.workspace_id,
        _node.run_id == _run.id,
        _node.status == rules.NodeStatus.WAITING,
    )
    .order_by(*_ORDER)
    .limit(MAX_WAITING)
    .lateral("waiting")
)


async def shown_nodes(
    work: UnitOfWork, actor: Actor, run_id: Id
) -> tuple[list[shapes.NodeRunShape], bool]:
    """The node runs that the answer about a run holds, in the order they began.

    Also returns whether some are left out. As many are kept as the budget of an answer carries:
    first the open and failed ones, then the ones outside loops, then the others.
    """
    found = await _SHOWN.rows(work, {"workspace_id": actor.workspace_id, "run_id": run_id})
    kept = carried_rows(found)[:SHOWN]
    return [node_shape(row) for row in sorted(kept, key=_position)], len(found) > len(kept)


def lacks_outputs(run: AutomationRun, nodes: Sequence[shapes.NodeRunShape]) -> bool:
    """True when the run's output leaves out the output of one of these nodes, for lack of room."""
    if any(node.node_kind == NodeKind.RESPOND for node in nodes):
        return False
    left_out = {node_id for node_id, output in (run.output or {}).items() if output is None}
    return any(
        node.node_id in left_out and not node.scope_key and node.output is not None
        for node in nodes
    )


async def show_last_errors(
    work: UnitOfWork, actor: Actor, run_id: Id, nodes: Sequence[shapes.NodeRunShape]
) -> None:
    """Add `metadata.lastError` to the running nodes whose earlier attempt failed."""
    running = [node for node in nodes if node.status is rules.NodeStatus.RUNNING]
    if not running:
        return
    attempts = await _attempts(work, actor, run_id, running)
    for node in running:
        if failed := attempts.get((node.node_id, node.scope_key)):
            node.metadata["lastError"] = failed[-1].error


async def progress(work: UnitOfWork, run: rules.RunRow) -> JsonObject:
    """The counts of a run's nodes: ended ones, and all known so far.

    A node that has not begun counts once; a node in a loop counts once for each iteration that
    has begun.
    """
    ended = [rules.NodeStatus.SUCCEEDED, rules.NodeStatus.FAILED, rules.NodeStatus.SKIPPED]
    counts = await work.first(
        sa.select(
            sa.func.count().filter(_node.status.in_(ended)).label("done"),
            sa.func.count().label("known"),
            sa.func.count(_node.node_id.distinct()).label("begun"),
        ).where(_node.workspace_id == run.workspace_id, _node.run_id == run.id)
    )
    assert counts is not None, "a row of aggregates"
    total = await number_of_nodes(work, run.automation_id, run.graph_checksum)
    return progress_of(counts.done, counts.known + (total or counts.begun) - counts.begun)


async def node_status(
    work: UnitOfWork, run: rules.RunStatusRow, node_id: str, scope_key: str
) -> str | None:
    """The status of a node in a scope of a run; None when it was not reached yet."""
    status: str | None = await work.scalar(
        sa.select(_node.status).where(
            _node.workspace_id == run.workspace_id,
            _node.run_id == run.id,
            _node.node_id == node_id,
            _node.scope_key == scope_key,
        )
    )
    return status


async def due_time(
    work: UnitOfWork, workspace_id: Id, run_id: Id, node_id: str, scope_key: str
) -> datetime | None:
    """The moment at which the wait of a node ends by itself, if there is one."""
    due_at: datetime | None = await work.scalar(
        sa.select(_node.due_at).where(
            _node.workspace_id == workspace_id,
            _node.run_id == run_id,
            _node.node_id == node_id,
            _node.scope_key == scope_key,
        )
    )
    return due_at


def progress_of(done: int, total: int) -> JsonObject:
    """Progress on the wire."""
    return {"done": done, "total": total}


async def waits(work: UnitOfWork, runs: Sequence[rules.RunStatusRow]) -> dict[Id, list[JsonObject]]:
    """The waiting nodes of each run, with the moment at which each wait ends if there is one."""
    by_run: dict[Id, list[JsonObject]] = {run.id: [] for run in runs}
    active = [run.id for run in runs if run.status in rules.ACTIVE_RUN]
    if not active:
        return by_run
    rows = await work.rows(
        sa.select(_run.id, _WAITING)
        .join(_WAITING, sa.true())
        .where(_run.workspace_id == runs[0].workspace_id, _run.id.in_(active))
        .order_by(_run.id, _WAITING.c.began, _WAITING.c.node_id, _WAITING.c.scope_key)
    )
    for row in rows:
        by_run[row.id].append(
            {
                "nodeId": row.node_id,
                "scopeKey": row.scope_key,
                "reason": row.node_kind,
                **({} if row.due_at is None else {"until": wire_timestamp(row.due_at)}),
            }
        )
    return by_run


async def list_node_runs(
    work: UnitOfWork,
    actor: Actor,
    run: AutomationRun,
    page: PageRequest,
    node_id: str | None,
    scope_key: str | None,
    status: rules.NodeStatus | None,
) -> shapes.NodeRunList:
    """The node runs of a run in the order they began, each with its failed attempts.

    The nodes at its start that have not begun come last.
    """
    statement = sa.select(node_run, BEGAN.label("began")).where(*_of(actor, run.id))
    given = {_node.node_id: node_id, _node.scope_key: scope_key, _node.status: status}
    filters = {column: value for column, value in given.items() if value is not None}
    for column, value in filters.items():
        statement = statement.where(column == value)
    if page.after is not None:
        statement = statement.where(sa.tuple_(*_ORDER) > sa.tuple_(*page.after))
    fetched = await work.rows(within_budget(statement, _ORDER, page.fetch, _HEAVY))
    rows = carried_rows(fetched)
    nodes = [((row.began, row.node_id, row.scope_key), node_shape(row)) for row in rows]
    if len(fetched) == len(rows) <= page.limit:
        unbegun = [
            ((NEVER, node.node_id, node.scope_key), node)
            for node in await listed_unbegun_nodes(work, run)
            if all(getattr(node, column.key) == value for column, value in filters.items())
        ]
        nodes += [one for one in unbegun if page.after is None or one[0] > page.after]
    node_page = page.of(nodes, itemgetter(0), cut=len(fetched) > len(rows))
    node_runs = [node for _, node in node_page.items]
    attempts = await _attempts(work, actor, run.id, node_runs)
    return shapes.NodeRunList(
        node_runs=[
            shapes.NodeRunWithAttempts(
                **dict(node), attempts=attempts.get((node.node_id, node.scope_key), [])
            )
            for node in node_runs
        ],
        cursor=node_page.cursor,
    )


async def _attempts(
    work: UnitOfWork, actor: Actor, run_id: Id, rows: Sequence[shapes.NodeRunShape]
) -> dict[tuple[str, str], list[shapes.NodeRunAttemptShape]]:
    attempt = node_run_attempt.c
    places = [(row.node_id, row.scope_key) for row in rows]
    attempts: dict[tuple[str, str], list[shapes.NodeRunAttemptShape]] = {}
    for row in await work.rows(
        sa.select(node_run_attempt)
        .where(
            attempt.workspace_id == actor.workspace_id,
            attempt.run_id == run_id,
            sa.tuple_(attempt.node_id, attempt.scope_key).in_(places),
        )
        .order_by(attempt.node_id, attempt.scope_key, attempt.attempt),
        of=NodeRunAttempt,
    ):
        shape = shapes.NodeRunAttemptShape.model_validate(row)
        attempts.setdefault((row.node_id, row.scope_key), []).append(shape)
    return attempts


def _of(actor: Actor, run_id: Id) -> tuple[sa.ColumnElement[bool], ...]:
    return _node.workspace_id == actor.workspace_id, _node.run_id == run_id


def _position(row: NodeRun) -> tuple[Any, ...]:
    return row.started_at or row.completed_at, row.node_id, row.scope_key


def node_shape(row: NodeRun) -> shapes.NodeRunShape:
    """A node run on the wire."""
    metadata: JsonObject = {"reused": True} if row.outcome == "reused" else {}
    if row.error_code is not None:
        metadata["errorCode"] = row.error_code
    return shapes.NodeRunShape(
        id=derived_id(row.run_id, row.node_id, row.scope_key),
        run_id=row.run_id,
        node_id=row.node_id,
        node_kind=row.node_kind,
        scope_key=row.scope_key,
        status=row.status,
        attempt=row.attempt,
        input=row.input,
        output=row.output,
        error=row.error,
        started_at=row.started_at,
        completed_at=row.completed_at,
        metadata=metadata,
    )


KEPT = 1_000
"""Graphs whose first nodes a process remembers; a graph never changes under its checksum."""

NEVER = datetime.max.replace(tzinfo=UTC)
"""The time at which nodes that have not begun are listed."""

_known: OrderedDict[tuple[Id, str], tuple[FirstNode, ...]] = OrderedDict()


class StartingRun(rules.RunRow, Protocol):
    """A run whose first nodes may not have begun."""

    start_node_id: str | None
    completed_at: datetime | None


async def unbegun_nodes(
    work: UnitOfWork, run: StartingRun, begun_ids: Collection[Id] = ()
) -> list[shapes.NodeRunShape]:
    """The node runs at the start of a run that have not begun, without these `begun_ids`.

    They keep their ids when they begin, and when the run is closed before: then they are cancelled,
    as all nodes are that it leaves open. None is left once the run is past its start, or has failed
    there.
    """
    if run.status == rules.RunStatus.SUCCEEDED:
        return []
    first = {derived_id(run.id, one.node_id, one.scope_key): one for one in await _first(work, run)}
    if not first.keys() >= set(begun_ids) or (begun_ids and run.status == rules.RunStatus.FAILED):
        return []
    status = rules.NodeStatus.QUEUED if run.status in rules.OPEN_RUN else rules.NodeStatus.CANCELLED
    return [
        shapes.NodeRunShape(
            id=node_run_id,
            run_id=run.id,
            node_id=node.node_id,
            node_kind=node.kind,
            scope_key=node.scope_key,
            status=status,
            attempt=0,
            input=None,
            output=None,
            error=None,
            started_at=None,
            completed_at=run.completed_at,
            metadata={},
        )
        for node_run_id, node in first.items()
        if node_run_id not in begun_ids
    ]


async def listed_unbegun_nodes(work: UnitOfWork, run: StartingRun) -> list[shapes.NodeRunShape]:
    """The node runs at the start of a run that have not begun, in the order of lists."""
    first = await unbegun_nodes(work, run)
    if not first:
        return []
    begun = sa.select(_node.node_id, _node.scope_key).where(
        _node.workspace_id == run.workspace_id,
        _node.run_id == run.id,
        _node.outcome.is_distinct_from("reused"),
    )
    rows = await work.rows(begun.limit(len(first) + 1))
    begun_ids = [derived_id(run.id, row.node_id, row.scope_key) for row in rows]
    unbegun = await unbegun_nodes(work, run, begun_ids)
    return sorted(unbegun, key=lambda node: (node.node_id, node.scope_key))


async def _first(work: UnitOfWork, run: StartingRun) -> Sequence[FirstNode]:
    key = run.automation_id, run.graph_checksum
    elsewhere = changes_start(run.start_node_id, run.options)
    if not elsewhere and key in _known:
        _known.move_to_end(key)
        return _known[key]
    plan = await _plan(work, run)
    if plan is None:
        return ()
    found = tuple(first_nodes(plan, run.start_node_id, run.options))
    if not elsewhere:
        _known[key] = found
        if len(_known) > KEPT:
            _known.popitem(last=False)
    return found


async def _plan(work: UnitOfWork, run: StartingRun) -> Plan | None:
    """The compiled graph of a run; None for one that was never compiled."""
    row = await stored_plan(work, run.automation_id, run.graph_checksum)
    return None if row is None or row.plan is None else Plan.from_json(row.plan)

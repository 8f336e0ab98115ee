"""The nodes that a run starts with, shown before they begin (decisions C18) or if they never do."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Protocol

from sqlalchemy import select

from models.automation.automation_runs.plans import FirstNode, changes_start, first_nodes
from models.automation.automation_runs.rows import RunRow
from models.automation.automation_runs.rules import OPEN_RUN, NodeStatus, RunStatus
from models.automation.automation_runs.shapes import NodeRunShape
from models.automation.automation_runs.tables import node_run
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.stored_graphs import stored_plan
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id

KEPT = 1_000
"""Graphs whose first nodes a process remembers; a graph never changes under its checksum."""

NEVER = datetime.max.replace(tzinfo=UTC)
"""The time at which nodes that have not begun are listed."""

_node = node_run.c
_known: OrderedDict[tuple[Id, str], tuple[FirstNode, ...]] = OrderedDict()


class StartingRun(RunRow, Protocol):
    """A run whose first nodes may not have begun."""

    start_node_id: str | None
    completed_at: datetime | None


async def unbegun_nodes(
    work: UnitOfWork, run: StartingRun, begun_ids: Collection[Id] = ()
) -> list[NodeRunShape]:
    """The node runs at the start of a run that have not begun, without these `begun_ids`.

    They keep their ids when they begin, and when the run is closed before: then they are cancelled,
    as all nodes are that it leaves open. None is left once the run is past its start, or has failed
    there.
    """
    if run.status == RunStatus.SUCCEEDED:
        return []
    first = {derived_id(run.id, one.node_id, one.scope_key): one for one in await _first(work, run)}
    if not first.keys() >= set(begun_ids) or (begun_ids and run.status == RunStatus.FAILED):
        return []
    status = NodeStatus.QUEUED if run.status in OPEN_RUN else NodeStatus.CANCELLED
    return [
        NodeRunShape(
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


async def listed_unbegun_nodes(work: UnitOfWork, run: StartingRun) -> list[NodeRunShape]:
    """The node runs at the start of a run that have not begun, in the order of lists."""
    first = await unbegun_nodes(work, run)
    if not first:
        return []
    begun = select(_node.node_id, _node.scope_key).where(
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

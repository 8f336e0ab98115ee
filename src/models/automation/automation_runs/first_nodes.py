"""The nodes that a queued run starts with, shown before they begin (decisions C18)."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from models.automation.automation_runs.plans import FirstNode, changes_start, first_nodes
from models.automation.automation_runs.rows import RunRow
from models.automation.automation_runs.rules import NodeStatus
from models.automation.automation_runs.shapes import NodeRunShape
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.stored_graphs import stored_plan
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id

KEPT = 1_000
"""Graphs whose first nodes a process remembers; a graph never changes under its checksum."""

_known: OrderedDict[tuple[Id, str], tuple[FirstNode, ...]] = OrderedDict()


class QueuedRun(RunRow, Protocol):
    """A run that has not begun."""

    start_node_id: str | None


async def queued_nodes(work: UnitOfWork, run: QueuedRun) -> list[NodeRunShape]:
    """The node runs that a queued run begins with. They keep their ids when they begin."""
    return [
        NodeRunShape(
            id=derived_id(run.id, node.node_id, node.scope_key),
            run_id=run.id,
            node_id=node.node_id,
            node_kind=node.kind,
            scope_key=node.scope_key,
            status=NodeStatus.QUEUED,
            attempt=0,
            input=None,
            output=None,
            error=None,
            started_at=None,
            completed_at=None,
            metadata={},
        )
        for node in await _first_nodes(work, run)
    ]


async def _first_nodes(work: UnitOfWork, run: QueuedRun) -> Sequence[FirstNode]:
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


async def _plan(work: UnitOfWork, run: QueuedRun) -> Plan | None:
    """The compiled graph of a run; None for one that was never compiled."""
    row = await stored_plan(work, run.automation_id, run.graph_checksum)
    return None if row is None or row.plan is None else Plan.from_json(row.plan)

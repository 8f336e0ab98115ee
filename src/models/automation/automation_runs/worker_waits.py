"""Runs that wait, although a worker could take them on: only that it is missing holds them up."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy import select

from models.automation.automation_runs.calls import called_run_id
from models.automation.automation_runs.cancellation import open_tree
from models.automation.automation_runs.rows import AcceptedRow
from models.automation.automation_runs.rules import NodeStatus, RunStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import Id
from models.core.lifecycle.workers import waiting_for_worker_since
from runtime.database import UnitOfWork

MOST = 1_000
"""Waiting nodes that are looked at."""

_run = automation_run.c
_node = node_run.c


class WaitingNode(Protocol):
    run_id: Id
    node_id: str
    scope_key: str
    node_kind: str
    due_at: datetime | None
    started_at: datetime | None


FindDue = Callable[
    [UnitOfWork, Id, Sequence[WaitingNode], datetime], Awaitable[Collection[datetime]]
]
"""Takes a workspace, nodes that wait, and the time at which the worker was lost. Gives the moments
from which on it had something to do for them."""

_FINDERS: list[FindDue] = []


def find_due_waits_with(find: FindDue) -> None:
    """Ask `find` for waits that are due; registering it again changes nothing."""
    if find not in _FINDERS:
        _FINDERS.append(find)


async def needs_worker_since(work: UnitOfWork, run: AcceptedRow) -> datetime | None:
    """The time since which an open run needs a worker that is lost; None while it needs none."""
    lost = await waiting_for_worker_since(work, run.created_at)
    if lost is None or run.status != RunStatus.WAITING:
        return lost
    due = await _due(work, run, lost)
    return max(lost, min(due)) if due else None


async def _due(work: UnitOfWork, run: AcceptedRow, lost: datetime) -> Collection[datetime]:
    """The moments from which on a worker could take on a waiting run, or one it waits for."""
    tree = open_tree(run.workspace_id, [run.id]).subquery()
    rows = await work.rows(
        select(_run.id, _run.status, _run.created_at).where(
            _run.workspace_id == run.workspace_id, _run.id.in_(select(tree.c.id))
        )
    )
    open_ids = {row.id for row in rows}
    nodes: Sequence[WaitingNode] = await work.rows(
        select(
            *(_node.run_id, _node.node_id, _node.scope_key),
            *(_node.node_kind, _node.due_at, _node.started_at),
        )
        .where(
            _node.workspace_id == run.workspace_id,
            _node.run_id.in_(open_ids),
            _node.status == NodeStatus.WAITING,
        )
        .limit(MOST),
        of=WaitingNode,
    )
    due = [row.created_at for row in rows if row.status != RunStatus.WAITING]
    due += [node.due_at for node in nodes if node.due_at and node.due_at <= work.now]
    due += [
        node.started_at
        for node in nodes
        if node.node_kind == NodeKind.CALL_AUTOMATION
        and node.started_at
        and called_run_id(node.run_id, node.node_id, node.scope_key) not in open_ids
    ]
    for find in _FINDERS:
        due += await find(work, run.workspace_id, nodes, lost)
    return due

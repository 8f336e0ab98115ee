"""A node of an ended run, put back to before it began, in a transaction that is rolled back.

Its run is open again. What ended later than the node is open too, so that the node reads what it
read then. The rows of our tables are otherwise as they are now.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy import and_, delete, select

from models.automation.automation_runs.rules import NodeStatus, RunStatus
from models.automation.automation_runs.tables import automation_run, node_run, node_run_attempt
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.rehearsal import replace_rows

_node = node_run.c


class RecordedNode(Protocol):
    """A node of a run, in one scope, and its end as far as it has one."""

    run_id: Id
    workspace_id: Id
    node_id: str
    scope_key: str
    node_kind: str
    status: str
    attempt: int
    outcome: str | None
    case_key: str | None
    input: JsonObject | None
    output: JsonObject | None
    error: str | None
    error_code: str | None
    started_at: datetime | None
    completed_at: datetime | None


async def recorded_nodes(work: UnitOfWork, run_id: Id) -> Sequence[RecordedNode]:
    """The nodes of a run in all scopes, in the order in which they began."""
    return await work.rows(
        select(node_run)
        .where(_node.run_id == run_id)
        .order_by(_node.started_at, _node.node_id, _node.scope_key),
        of=RecordedNode,
    )


async def is_run(work: UnitOfWork, run_id: Id) -> bool:
    """True when there is such a run."""
    return (
        await work.scalar(select(automation_run.c.id).where(automation_run.c.id == run_id))
        is not None
    )


async def reopen_run(work: UnitOfWork, run_id: Id) -> None:
    """Let nodes of a run start again."""
    await replace_rows(
        work,
        automation_run,
        automation_run.c.id == run_id,
        status=RunStatus.RUNNING.value,
        output=None,
        error=None,
        completed_at=None,
    )


async def forget_node(work: UnitOfWork, node: RecordedNode, earlier: Collection[str]) -> None:
    """Remove what is recorded of a node, and the ends of all that ended after it began.

    `earlier` are the nodes that lead to it, which had ended whatever clocks say. The iterations of
    a loop stay: they are what it has come to.
    """
    is_node = and_(
        _node.run_id == node.run_id,
        _node.node_id == node.node_id,
        _node.scope_key == node.scope_key,
    )
    if node.started_at is not None:
        own = f"{node.scope_key}/{node.node_id}:".removeprefix("/")
        later = (
            _node.completed_at > node.started_at,
            _node.node_id.not_in(earlier),
            ~_node.scope_key.startswith(own, autoescape=True),
            ~is_node,
        )
        await replace_rows(
            work,
            node_run,
            and_(_node.run_id == node.run_id, *later),
            status=NodeStatus.RUNNING.value,
            output=None,
            completed_at=None,
        )
    attempt = node_run_attempt.c
    await work.execute(
        delete(node_run_attempt).where(
            attempt.run_id == node.run_id,
            attempt.node_id == node.node_id,
            attempt.scope_key == node.scope_key,
        )
    )
    await work.execute(delete(node_run).where(is_node))

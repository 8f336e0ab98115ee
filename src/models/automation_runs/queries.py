"""Reading runs; every query names the workspace (promise I6)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, func, select

from models.access.rules import Actor
from models.automation_runs.rules import NodeStatus, RunSource, RunStatus
from models.automation_runs.shapes import (
    AutomationRunDetail,
    AutomationRunList,
    AutomationRunShape,
    NodeRunShape,
)
from models.automation_runs.tables import automation_run, node_run
from models.automations.tables import automation_graph
from models.base import Id, JsonObject
from models.pagination import PageRequest
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.families import Family
from runtime.ids import derived_id

_ENDED = frozenset({NodeStatus.SUCCEEDED, NodeStatus.FAILED, NodeStatus.SKIPPED})


async def load_run(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id, *, lock: bool = False
) -> Row[Any]:
    """The row of a run of this automation. Raises NotFoundError."""
    statement = _runs(actor.workspace_id, automation_id).where(automation_run.c.id == run_id)
    row = await work.first(statement.with_for_update(of=automation_run) if lock else statement)
    if row is None:
        raise NotFoundError("run")
    return row


async def detail(
    work: UnitOfWork, actor: Actor, automation_id: Id, run_id: Id
) -> AutomationRunDetail:
    """A run with its node runs, in the order they started."""
    run = await load_run(work, actor, automation_id, run_id)
    nodes = await work.rows(
        select(node_run)
        .where(node_run.c.workspace_id == actor.workspace_id, node_run.c.run_id == run_id)
        .order_by(node_run.c.started_at.nulls_last(), node_run.c.completed_at, node_run.c.node_id)
    )
    total = await work.scalar(
        select(func.jsonb_array_length(automation_graph.c.graph["nodes"])).where(
            automation_graph.c.automation_id == automation_id,
            automation_graph.c.checksum == run.graph_checksum,
        )
    )
    return AutomationRunDetail(
        **_run_fields(run, run_metadata(run_id, nodes, total)),
        node_runs=[_node_shape(row) for row in nodes],
    )


async def list_runs(
    work: UnitOfWork,
    actor: Actor,
    automation_id: Id,
    page: PageRequest,
    status: RunStatus | None,
    source: RunSource | None,
) -> AutomationRunList:
    """The runs of an automation, newest first, without node runs."""
    statement = _runs(actor.workspace_id, automation_id).order_by(automation_run.c.id.desc())
    if status is not None:
        statement = statement.where(automation_run.c.status == status)
    if source is not None:
        statement = statement.where(automation_run.c.source == source)
    if page.after is not None:
        statement = statement.where(automation_run.c.id < page.after[0])
    rows = await work.rows(statement.limit(page.fetch))
    shown = page.of(rows, lambda row: (row.id,))
    return AutomationRunList(
        runs=[AutomationRunShape(**_run_fields(row, _identity(row.id))) for row in shown.items],
        cursor=shown.cursor,
    )


def _runs(workspace_id: Id, automation_id: Id) -> Select[Any]:
    return select(automation_run).where(
        automation_run.c.workspace_id == workspace_id,
        automation_run.c.automation_id == automation_id,
    )


def run_metadata(run_id: Id, nodes: Sequence[Row[Any]], total: int | None) -> JsonObject:
    """What a run shows beside its own fields: its workflow, its waits, how far it has come."""
    waiting = [
        {
            "nodeId": row.node_id,
            "reason": row.node_kind,
            "until": None if row.due_at is None else wire_timestamp(row.due_at),
        }
        for row in nodes
        if row.status == NodeStatus.WAITING
    ]
    done = sum(row.status in _ENDED for row in nodes)
    return {
        **_identity(run_id),
        "waiting": waiting,
        "progress": {"done": done, "total": total or 0},
    }


def _identity(run_id: Id) -> JsonObject:
    return {"temporalWorkflowId": Family.AUTOMATION_RUN.workflow_id(run_id)}


def _run_fields(row: Row[Any], metadata: JsonObject) -> JsonObject:
    fields: JsonObject = dict(row._mapping)
    del fields["graph_checksum"], fields["options"], fields["created_by_user_id"]
    return {**fields, "metadata": metadata}


def _node_shape(row: Row[Any]) -> NodeRunShape:
    return NodeRunShape(
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
        metadata={"reused": True} if row.outcome == "reused" else {},
    )

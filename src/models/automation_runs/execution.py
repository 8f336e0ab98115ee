"""Progress of a run, written by its workflow: begin, nodes, waits, end.

Every write is conditional on the states it may leave, so repeating one is harmless and a closed
run stays as it is (promises I3, I4).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation_runs.gate import RunContext
from models.automation_runs.rules import (
    ACTIVE_RUN,
    OPEN_NODE,
    NodeStatus,
    RunStatus,
    sources_of,
)
from models.automation_runs.tables import automation_run, node_run, node_run_attempt
from models.base import Id, JsonObject
from runtime.database import UnitOfWork

ERROR_LIMIT = 2_000
"""Characters of an error that are kept; the rest would only repeat a foreign server's page."""


@dataclass(frozen=True, slots=True)
class BegunRun:
    """What the first transaction of a workflow learns about its run."""

    workspace_id: Id
    automation_id: Id
    graph_checksum: str
    start_node_id: str | None
    options: JsonObject


@dataclass(frozen=True, slots=True)
class NodeKey:
    """One node in one scope of a run, with the kind its row shows."""

    run_id: Id
    node_id: str
    scope_key: str
    kind: str


async def begin(work: UnitOfWork, run_id: Id) -> BegunRun | None:
    """`queued → running`; None when the run is closed. Repeating it changes nothing."""
    run = automation_run.c
    await work.execute(
        update(automation_run)
        .where(run.id == run_id, run.status == RunStatus.QUEUED)
        .values(status=RunStatus.RUNNING, started_at=work.now)
    )
    return await lock_open(work, run_id)


async def lock_open(work: UnitOfWork, run_id: Id) -> BegunRun | None:
    """The run, locked until the transaction ends; None when it is closed."""
    run = automation_run.c
    row = await work.first(
        select(
            run.workspace_id, run.automation_id, run.graph_checksum, run.start_node_id, run.options
        )
        .where(run.id == run_id, run.status.in_(ACTIVE_RUN))
        .with_for_update()
    )
    return None if row is None else BegunRun(*tuple(row))


async def complete_node(
    work: UnitOfWork,
    context: RunContext,
    key: NodeKey,
    *,
    inputs: JsonObject | None,
    output: JsonObject,
    outcome: str,
    case_key: str | None = None,
    attempt: int = 1,
) -> None:
    """Write a node's success, whether its row exists (a node that started before) or not."""
    values = {
        "status": NodeStatus.SUCCEEDED,
        "attempt": attempt,
        "outcome": outcome,
        "case_key": case_key,
        "input": inputs,
        "output": output,
        "error": None,
        "error_code": None,
        "completed_at": work.now,
    }
    await _write_node(work, context, key, values)


async def fail_node(
    work: UnitOfWork,
    context: RunContext,
    key: NodeKey,
    *,
    code: str,
    message: str,
    inputs: JsonObject | None = None,
    attempt: int = 1,
) -> None:
    """Write a node's final failure."""
    values = {
        "status": NodeStatus.FAILED,
        "attempt": attempt,
        "input": inputs,
        "error": message[:ERROR_LIMIT],
        "error_code": code,
        "completed_at": work.now,
    }
    await _write_node(work, context, key, values)


async def start_node(
    work: UnitOfWork, context: RunContext, key: NodeKey, *, inputs: JsonObject, attempt: int
) -> None:
    """Show an outside node as running, before its effect leaves the machine."""
    values = {
        "status": NodeStatus.RUNNING,
        "attempt": attempt,
        "input": inputs,
        "attempt_started_at": work.now,
    }
    await _write_node(work, context, key, values)


async def park_node(
    work: UnitOfWork,
    context: RunContext,
    key: NodeKey,
    *,
    inputs: JsonObject | None,
    seconds: float,
) -> None:
    """Show a waiting node, with the moment it is due at."""
    due_at = work.now_after(seconds)
    values = {"status": NodeStatus.WAITING, "attempt": 1, "input": inputs, "due_at": due_at}
    await _write_node(work, context, key, values)


async def wake_node(work: UnitOfWork, key: NodeKey) -> None:
    """`waiting → succeeded`, keeping what the node was shown with."""
    await work.execute(
        update(node_run)
        .where(
            node_run.c.run_id == key.run_id,
            node_run.c.node_id == key.node_id,
            node_run.c.scope_key == key.scope_key,
            node_run.c.status == NodeStatus.WAITING,
        )
        .values(status=NodeStatus.SUCCEEDED, output={}, outcome="always", completed_at=work.now)
    )


async def record_attempt(
    work: UnitOfWork, context: RunContext, key: NodeKey, *, attempt: int, code: str, message: str
) -> None:
    """Keep an attempt that failed and will be repeated."""
    started = (
        select(node_run.c.attempt_started_at)
        .where(
            node_run.c.run_id == key.run_id,
            node_run.c.node_id == key.node_id,
            node_run.c.scope_key == key.scope_key,
        )
        .scalar_subquery()
    )
    await work.execute(
        upsert(node_run_attempt)
        .values(
            run_id=key.run_id,
            node_id=key.node_id,
            scope_key=key.scope_key,
            attempt=attempt,
            workspace_id=context.workspace_id,
            error=message[:ERROR_LIMIT],
            error_code=code,
            started_at=started,
            completed_at=work.now,
        )
        .on_conflict_do_nothing()
    )


async def set_waiting(work: UnitOfWork, run_id: Id, *, waiting: bool) -> None:
    """`running ⇄ waiting`: the second exactly while nothing runs and something waits (C8)."""
    target = RunStatus.WAITING if waiting else RunStatus.RUNNING
    origin = RunStatus.RUNNING if waiting else RunStatus.WAITING
    await work.execute(
        update(automation_run)
        .where(automation_run.c.id == run_id, automation_run.c.status == origin)
        .values(status=target)
    )


async def finish(
    work: UnitOfWork,
    run_id: Id,
    *,
    status: RunStatus,
    output: Any,
    error: str | None = None,
) -> bool:
    """Write the end of a run and close what is still open in it; False when it was closed."""
    closed = await work.execute(
        update(automation_run)
        .where(automation_run.c.id == run_id, automation_run.c.status.in_(sources_of(status)))
        .values(status=status, output=output, error=error, completed_at=work.now)
    )
    if closed.rowcount == 0:
        return False
    if status is not RunStatus.SUCCEEDED:
        await close_nodes(work, run_id)
    return True


async def close_nodes(work: UnitOfWork, run_id: Id) -> None:
    """Mark the nodes a closed run left open as cancelled."""
    await work.execute(
        update(node_run)
        .where(node_run.c.run_id == run_id, node_run.c.status.in_(OPEN_NODE))
        .values(status=NodeStatus.CANCELLED, completed_at=work.now)
    )


async def skip_nodes(
    work: UnitOfWork,
    workspace_id: Id,
    run_id: Id,
    nodes: Sequence[tuple[str, str, str]],
    outcome: str | None = None,
) -> None:
    """Record nodes that did not run, given as (node id, scope key, kind)."""
    if not nodes:
        return
    rows = [
        {
            "run_id": run_id,
            "node_id": node_id,
            "scope_key": scope_key,
            "workspace_id": workspace_id,
            "node_kind": kind,
            "status": NodeStatus.SKIPPED,
            "attempt": 0,
            "outcome": outcome,
            "completed_at": work.now,
        }
        for node_id, scope_key, kind in nodes
    ]
    await work.execute(upsert(node_run).values(rows).on_conflict_do_nothing())


def leaf_outputs(run_id: Id, leaves: Sequence[str]) -> Any:
    """SQL for the output of a run: the outputs of its succeeded leaf nodes by id (C8)."""
    return (
        select(
            func.coalesce(
                func.jsonb_object_agg(node_run.c.node_id, node_run.c.output),
                literal({}, automation_run.c.output.type),
            )
        )
        .where(
            node_run.c.run_id == run_id,
            node_run.c.scope_key == "",
            node_run.c.node_id.in_(leaves),
            node_run.c.status == NodeStatus.SUCCEEDED,
        )
        .scalar_subquery()
    )


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """How the node that decided the end of a run ended itself."""

    output: JsonObject | None
    error: str | None

    @property
    def reason(self) -> str:
        """Why a run failed here: the node's error, or the message of a stop node."""
        return self.error or (self.output or {}).get("message") or "The run was stopped as failed."


async def node_end(work: UnitOfWork, run_id: Id, node_id: str, scope_key: str) -> NodeEnd:
    """The end of a node that has ended."""
    row = await work.first(
        select(node_run.c.output, node_run.c.error).where(
            node_run.c.run_id == run_id,
            node_run.c.node_id == node_id,
            node_run.c.scope_key == scope_key,
        )
    )
    return NodeEnd(*tuple(row)) if row is not None else NodeEnd(None, None)


async def _write_node(
    work: UnitOfWork, context: RunContext, key: NodeKey, values: JsonObject
) -> None:
    if context.node_status is None:
        statement: Any = insert(node_run).values(
            run_id=key.run_id,
            node_id=key.node_id,
            scope_key=key.scope_key,
            workspace_id=context.workspace_id,
            node_kind=key.kind,
            started_at=work.now,
            **values,
        )
    else:
        statement = (
            update(node_run)
            .where(
                node_run.c.run_id == key.run_id,
                node_run.c.node_id == key.node_id,
                node_run.c.scope_key == key.scope_key,
                node_run.c.status.in_(OPEN_NODE),
            )
            .values(**values)
        )
    await work.execute(statement)

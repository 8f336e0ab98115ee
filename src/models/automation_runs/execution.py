"""Progress of a run, written by its workflow: begin, waits, end.

Every write is conditional on the states it may leave, so repeating one is harmless and a closed
run stays as it is (promises I3, I4).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ARRAY, Text, bindparam, case, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation_runs.facts import RunFacts, fact_columns, read_facts
from models.automation_runs.rules import (
    OPEN_NODE,
    OPEN_RUN,
    NodeStatus,
    RunStatus,
    sources_of,
)
from models.automation_runs.tables import automation_run, node_run
from models.base import Id, JsonObject
from runtime.database import UnitOfWork, Work
from runtime.prepared import Prepared
from runtime.schema import Timestamp

_run = automation_run.c

_BEGIN = Prepared(
    update(automation_run)
    .where(
        _run.id == bindparam("run_id"),
        _run.status == func.any(literal(OPEN_RUN, ARRAY(Text))),
    )
    .values(
        status=case((_run.status == RunStatus.QUEUED, RunStatus.RUNNING), else_=_run.status),
        started_at=func.coalesce(_run.started_at, bindparam("now", type_=Timestamp)),
    )
    .returning(*fact_columns())
)


async def begin(work: Work, run_id: Id) -> RunFacts | None:
    """`queued → running`; None when the run is closed. Repeating it changes nothing."""
    row = await _BEGIN.first(work, {"run_id": run_id, "now": work.now})
    return None if row is None else read_facts(row)


_SET_WAITING = Prepared(
    update(automation_run)
    .where(_run.id == bindparam("run_id"), _run.status == bindparam("origin", type_=Text))
    .values(status=bindparam("target", type_=Text))
)


async def set_waiting(work: Work, run_id: Id, *, waiting: bool) -> None:
    """`running ⇄ waiting`: the second exactly while nothing runs and something waits (C8)."""
    statuses = (RunStatus.RUNNING, RunStatus.WAITING)
    origin, target = statuses if waiting else reversed(statuses)
    await _SET_WAITING.execute(work, {"run_id": run_id, "origin": origin, "target": target})


async def finish(
    work: UnitOfWork,
    run_id: Id,
    *,
    status: RunStatus,
    output: JsonObject | None,
    error: str | None = None,
) -> bool:
    """Write the end of a run; False when it was closed already."""
    closed = await work.execute(
        update(automation_run)
        .where(automation_run.c.id == run_id, automation_run.c.status.in_(sources_of(status)))
        .values(status=status, output=output, error=error, completed_at=work.now)
    )
    return closed.rowcount > 0


async def abandon(work: UnitOfWork, run_id: Id, status: RunStatus, error: str) -> bool:
    """Close a run whose workflow will not; False when it was closed already."""
    closed = await finish(work, run_id, status=status, output=None, error=error)
    if closed:
        await close_nodes(work, run_id)
    return closed


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


_LEAF_OUTPUTS = (
    select(
        func.coalesce(
            func.jsonb_object_agg(node_run.c.node_id, node_run.c.output),
            literal({}, automation_run.c.output.type),
        )
    )
    .where(
        node_run.c.run_id == bindparam("run_id"),
        node_run.c.scope_key == "",
        node_run.c.node_id == func.any(bindparam("leaves", type_=ARRAY(Text))),
        node_run.c.status == NodeStatus.SUCCEEDED,
    )
    .scalar_subquery()
)
"""The output of a run: the outputs of its succeeded leaf nodes by id (C8)."""

_SUCCEED = Prepared(
    update(automation_run)
    .where(
        _run.id == bindparam("run_id"),
        _run.status == func.any(literal(sources_of(RunStatus.SUCCEEDED), ARRAY(Text))),
    )
    .values(
        status=RunStatus.SUCCEEDED,
        output=_LEAF_OUTPUTS,
        completed_at=bindparam("now", type_=Timestamp),
    )
)


async def succeed(work: Work, run_id: Id, leaves: Sequence[str]) -> bool:
    """Write the end of a run whose nodes all ended well; False when it was closed already."""
    parameters = {"run_id": run_id, "leaves": list(leaves), "now": work.now}
    return await _SUCCEED.execute(work, parameters) > 0


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

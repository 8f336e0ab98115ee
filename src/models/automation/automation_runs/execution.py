"""Writing the progress of a run, for its workflow: begin, wait, finish.

Every write is conditional on the states it may leave, so repeating one is harmless and a closed
run stays as it is (promises I3, I4).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    FromClause,
    Text,
    Update,
    bindparam,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs import end_effects, slots
from models.automation.automation_runs.lifecycle import AUTOMATION_RUNS
from models.automation.automation_runs.node_writes import close_nodes
from models.automation.automation_runs.outputs import first_response, leaf_outputs, within_limit
from models.automation.automation_runs.plans import read_reused
from models.automation.automation_runs.rules import (
    OPEN_RUN,
    NodeStatus,
    RunStatus,
    sources_of,
)
from models.automation.automation_runs.run_header import (
    RunHeader,
    header_columns,
    load_outputs,
    read_header,
)
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import Id, JsonObject
from models.core.pauses.resting import rests
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp
from runtime.work import Work

_run = automation_run.c

_BEGIN = PreparedStatement(
    update(automation_run)
    .where(
        _run.id == bindparam("run_id"),
        _run.status == func.any(literal(OPEN_RUN, ARRAY(Text))),
        _run.admitted_at.is_not(None),
        ~rests(_run.id),
    )
    .values(
        # One that waits begins anew: its execution has come to none of its waits yet.
        status=RunStatus.RUNNING.value,
        started_at=func.coalesce(_run.started_at, bindparam("now", type_=Timestamp)),
    )
    .returning(*header_columns())
)


async def begin(work: Work, run_id: Id) -> RunHeader | None:
    """`queued → running`, or anew; None when the run is closed, or may not begin yet.

    Repeating it changes nothing.
    """
    row = await _BEGIN.first(work, {"run_id": run_id, "now": work.now})
    return None if row is None else read_header(row)


_WAITS_FOR_SLOT = PreparedStatement(
    select(_run.id).where(
        _run.id == bindparam("run_id"),
        _run.status == RunStatus.QUEUED.value,
        or_(_run.admitted_at.is_(None), rests(_run.id)),
    )
)


async def waits_for_slot(work: Work, run_id: Id) -> bool:
    """True while a run that has not begun waits for a slot, or for the end of a pause."""
    return await _WAITS_FOR_SLOT.first(work, {"run_id": run_id}) is not None


_SET_WAITING = PreparedStatement(
    update(automation_run)
    .where(_run.id == bindparam("run_id"), _run.status == RunStatus.RUNNING.value)
    .values(status=RunStatus.WAITING.value)
)


async def set_waiting(work: Work, run_id: Id) -> bool:
    """`running → waiting`, for a run of a single execution; `suspension.resume` undoes it.

    False when it was not running.
    """
    return await _SET_WAITING.execute(work, {"run_id": run_id}) > 0


async def finish(
    work: UnitOfWork,
    run_id: Id,
    *,
    status: RunStatus,
    output: JsonObject | None,
    error: str | None = None,
    node_id: str | None = None,
) -> bool:
    """Write the end of a run, which `node_id` decided, and what follows; False when it was closed.

    Its open nodes are closed with it.
    """
    await slots.lock_of_runs(work, [run_id])
    # The wait for the lock is a part of the run, and a slot is handed on when it ends.
    work.now = utc_now()
    row = await work.first(
        AUTOMATION_RUNS.moving(status)
        .where(automation_run.c.id == run_id)
        .values(output=output, error=error, completed_at=work.now)
        .returning(*end_effects.ENDED)
    )
    if row is None:
        return False
    work.answered.add(run_id)
    await close_nodes(work, [run_id])
    await end_effects.apply(work, row, node_id)
    return True


async def abandon(work: UnitOfWork, run_id: Id, status: RunStatus, error: str) -> bool:
    """Close a run whose workflow cannot. Returns False when it was closed already."""
    return await finish(work, run_id, status=status, output=None, error=error)


async def skip_nodes(
    work: UnitOfWork,
    workspace_id: Id,
    run_id: Id,
    nodes: Sequence[tuple[str, str, str]],
    outcome: str | None = None,
) -> None:
    """Record nodes that did not run, given as (node id, scope key, kind)."""
    await skip_nodes_of(work, workspace_id, {run_id: nodes}, outcome)


async def skip_nodes_of(
    work: UnitOfWork,
    workspace_id: Id,
    nodes_by_run: Mapping[Id, Sequence[tuple[str, str, str]]],
    outcome: str | None = None,
) -> None:
    """Record nodes of several runs that did not run, given as in `skip_nodes`."""
    rows = [(run_id, *node) for run_id, nodes in nodes_by_run.items() for node in nodes]
    if not rows:
        return
    names = ("run_id", "node_id", "scope_key", "node_kind")
    columns = [
        literal([row[place] for row in rows], ARRAY(node_run.c[name].type))
        for place, name in enumerate(names)
    ]
    skipped = func.unnest(*columns).table_valued(*names).render_derived("skipped")
    constants = {
        "workspace_id": literal(workspace_id, node_run.c.workspace_id.type),
        "status": literal(NodeStatus.SKIPPED.value, Text),
        "attempt": literal(0),
        "outcome": literal(outcome, Text),
        "completed_at": literal(work.now, Timestamp),
    }
    statement = upsert(node_run).from_select(
        [*names, *constants], select(*skipped.c, *constants.values()).select_from(skipped)
    )
    await work.execute(statement.on_conflict_do_nothing())


def succeeding(nodes: FromClause, reused: BindParameter[Any] | None = None) -> Update:
    """The end of a run whose nodes, with these rows, all ended well."""
    outputs: ColumnElement[Any] = leaf_outputs(nodes)
    return (
        update(automation_run)
        .where(
            _run.id == bindparam("run_id"),
            _run.status == func.any(literal(sources_of(RunStatus.SUCCEEDED), ARRAY(Text))),
        )
        .values(
            status=RunStatus.SUCCEEDED,
            output=func.coalesce(
                first_response(nodes), outputs if reused is None else reused.concat(outputs)
            ),
            completed_at=bindparam("now", type_=Timestamp),
        )
    )


_SUCCEED = PreparedStatement(
    succeeding(node_run, reused=bindparam("reused", type_=_run.output.type))
)


async def succeed_and_follow(work: UnitOfWork, run: RunHeader, leaves: Sequence[str]) -> bool:
    """Write the end of a run whose nodes all ended well; False when it was closed already.

    Its slot is handed on, and reused outputs are among its own.
    """
    reused = {one.node_id for one in read_reused(run.options)}.intersection(leaves)
    outputs = await load_outputs(work, run, reused, [""]) if reused else []
    await slots.lock_of_runs(work, [run.run_id])
    work.now = utc_now()
    parameters = {
        "run_id": run.run_id,
        "leaves": list(leaves),
        "now": work.now,
        "reused": within_limit({row.node_id: row.output for row in outputs if row.succeeded}),
    }
    work.answered.add(run.run_id)
    written = await _SUCCEED.execute(work, parameters) > 0
    if written and run.concurrency_key is not None:
        await slots.hand_on(work, run.automation_id, run.concurrency_key)
    return written


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """The end of the node that decided the end of a run."""

    output: JsonObject | None
    error: str | None

    @property
    def reason(self) -> str:
        """The reason why a run failed here: the node's error, or the message of a stop node."""
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

"""Writing a node run together with passing the gate, in one statement. Most nodes need no more.

A statement that writes nothing means that the run is closed, or that the node was written before.
The caller then passes the gate in a transaction to find out which.
"""

from sqlalchemy import ARRAY, Text, bindparam, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs.gate import RUN_IS_OPEN
from models.automation.automation_runs.node_writes import Completion, NodeKey, identity, running
from models.automation.automation_runs.rules import OPEN_NODE
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import JsonObject
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work


def _inserted(*names: str) -> PreparedStatement:
    """A new node run with these columns, if its run is open and it has none."""
    own = ("run_id", "node_id", "scope_key", "workspace_id", "node_kind", *names)
    values = select(*(bindparam(name, type_=node_run.c[name].type) for name in own))
    behind_gate = values.where(RUN_IS_OPEN).with_for_update(read=True, of=automation_run)
    return PreparedStatement(
        upsert(node_run).from_select(own, behind_gate).on_conflict_do_nothing()
    )


_ENDED = ("status", "attempt", "outcome", "case_key", "output", "completed_at")
_COMPLETE = _inserted(*_ENDED, "input", "started_at")
_START = _inserted("status", "attempt", "input", "attempt_started_at", "started_at")
_GATE = select(automation_run.c.id).where(RUN_IS_OPEN).with_for_update(read=True).cte("gate")
_COMPLETE_STARTED = PreparedStatement(
    update(node_run)
    .where(
        node_run.c.run_id == _GATE.c.id,
        node_run.c.node_id == bindparam("of_node_id", type_=node_run.c.node_id.type),
        node_run.c.scope_key == bindparam("of_scope_key", type_=node_run.c.scope_key.type),
        node_run.c.status == func.any(literal(OPEN_NODE, ARRAY(Text))),
    )
    .values({name: bindparam(f"new_{name}", type_=node_run.c[name].type) for name in _ENDED})
)


async def complete_with_gate(work: Work, key: NodeKey, completion: Completion) -> bool:
    """Pass the gate and write a success, for a node with no other effect than its output.

    Returns False when nothing was written: the run is closed, or the node has ended before.
    """
    values = {
        **identity(key),
        "started_at": key.began_at,
        "input": None,
        **completion.values(),
    }
    return await _COMPLETE.execute(work, values) > 0


async def start_with_gate(work: Work, key: NodeKey, inputs: JsonObject) -> bool:
    """Pass the gate and write the first attempt of an outside node.

    Returns False when nothing was written: the run is closed, or the node has begun before.
    """
    values = {**identity(key), **running(work, inputs, 1), "started_at": key.began_at}
    return await _START.execute(work, values) > 0


async def complete_started(work: Work, key: NodeKey, completion: Completion) -> bool:
    """Pass the gate and write the success of a node that is shown as running.

    Returns False when nothing was written: the run is closed, or the node has ended before.
    """
    values = {f"new_{name}": value for name, value in completion.values().items()}
    place = {"run_id": key.run_id, "of_node_id": key.node_id, "of_scope_key": key.scope_key}
    return await _COMPLETE_STARTED.execute(work, {**place, **values}) > 0

"""Writing the ends of nodes that only compute together, in one statement and one commit.

A batch is written as a whole or not at all, and behind the gate of its run (`gate.pass_gate`): one
that finds its run closed writes nothing, one that finds a node written before raises the error of
the database.
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    FromClause,
    Select,
    Text,
    bindparam,
    column,
    exists,
    func,
    insert,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.automation.automation_runs.execution import succeeding
from models.automation.automation_runs.gate import RUN_IS_OPEN
from models.automation.automation_runs.node_writes import Completion, NodeKey
from models.automation.automation_runs.rules import NodeStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import Id, JsonObject
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work

_RUN_ID = bindparam("run_id", type_=automation_run.c.id.type)
_GATE = select(automation_run.c.id, automation_run.c.workspace_id).where(RUN_IS_OPEN)
_FIELDS = (
    "node_id", "scope_key", "node_kind", "status", "attempt", "outcome", "case_key",
    "input", "output", "started_at", "completed_at",
)  # fmt: skip
_COLUMNS = ("run_id", "workspace_id", *_FIELDS)
_BATCH = (
    func.jsonb_to_recordset(bindparam("nodes", type_=Text).cast(JSONB))
    .table_valued(*(column(name, node_run.c[name].type) for name in _FIELDS))
    .render_derived(name="batch", with_types=True)
)


def _rows(gate: FromClause) -> Select[Any]:
    return select(*gate.c, *_BATCH.c).select_from(gate.join(_BATCH, true()))


_WRITE = PreparedStatement(
    insert(node_run).from_select(_COLUMNS, _rows(_GATE.with_for_update(read=True).cte("gate")))
)


def _ending() -> PreparedStatement:
    # The stronger lock: two executions that share the row could not both go on to end the run.
    gate = _GATE.with_for_update(key_share=True).cte("gate")
    shown = exists().where(
        *(node_run.c[name] == _BATCH.c[name] for name in ("node_id", "scope_key")),
        node_run.c.run_id == gate.c.id,
    )
    # A node that the run did not come to may have been shown while the run waited.
    fresh = _rows(gate).where(or_(_BATCH.c.status != NodeStatus.SKIPPED.value, ~shown))
    names = ("run_id", "node_id", "scope_key", "node_kind", "status", "output", "completed_at")
    columns = [node_run.c[name] for name in names]
    batch = insert(node_run).from_select(_COLUMNS, fresh).returning(*columns).cte("ended")
    before = select(*columns).where(node_run.c.run_id == _RUN_ID)
    return PreparedStatement(succeeding(union_all(before, select(*batch.c)).subquery("nodes")))


_END = _ending()


def success_row(key: NodeKey, completion: Completion) -> JsonObject:
    """The row of a node that has just succeeded, for a batch."""
    values = completion.values()
    return {
        **_identity(key.node_id, key.scope_key, key.kind),
        **values,
        "started_at": key.began_at.isoformat(),
        "completed_at": values["completed_at"].isoformat(),
    }


def skipped_row(work: Work, node_id: str, scope_key: str, kind: str) -> JsonObject:
    """The row of a node to which its run does not come, for a batch."""
    return {
        **_identity(node_id, scope_key, kind),
        "status": NodeStatus.SKIPPED,
        "attempt": 0,
        "completed_at": work.now.isoformat(),
    }


def _identity(node_id: str, scope_key: str, kind: str) -> JsonObject:
    return {"node_id": node_id, "scope_key": scope_key, "node_kind": kind}


async def write_nodes(work: Work, run_id: Id, rows: Sequence[JsonObject]) -> bool:
    """Pass the gate and write the ends of nodes; False when the run is closed."""
    return await _WRITE.execute(work, {"run_id": run_id, "nodes": _text(rows)}) > 0


async def succeed(
    work: Work, run_id: Id, leaves: Sequence[str], rows: Sequence[JsonObject]
) -> bool:
    """Write the last nodes of a run and its end in success; False when it was closed already.

    It is for runs that end alone (see `RunHeader`): nothing else follows.
    """
    parameters = {"run_id": run_id, "leaves": list(leaves), "now": work.now}
    work.answered.add(run_id)
    return await _END.execute(work, {**parameters, "nodes": _text(rows)}) > 0


def _text(rows: Sequence[JsonObject]) -> str:
    return json.dumps(rows, ensure_ascii=False)

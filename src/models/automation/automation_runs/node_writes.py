"""Writing node runs, behind the gate that the caller has passed.

A node has begun before the transaction that writes it, which reads what the node needs first. It
ends when its end is written, and not when that transaction began.

Every write of a node's state raises NodeWrittenError when another execution of it was faster.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs.errors import NodeError, NodeWrittenError
from models.automation.automation_runs.gate import NodeRow
from models.automation.automation_runs.rules import OPEN_NODE, NodeStatus
from models.automation.automation_runs.tables import automation_run, node_run, node_run_attempt
from models.automation.automations.rules.attributes import MAX_ATTRIBUTES
from models.core.base import Id, JsonObject
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.work import Work

ERROR_LIMIT = 2_000
"""Characters of an error that are kept; the rest would only repeat a foreign server's page."""


@dataclass(frozen=True, slots=True)
class NodeKey:
    """One node in one scope of a run; `began_at` is when whoever holds this turned to it."""

    workspace_id: Id
    run_id: Id
    node_id: str
    scope_key: str
    kind: str
    began_at: datetime = field(default_factory=utc_now, compare=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """A node's success; `inputs` are its parameters, None leaves what the row shows already."""

    inputs: JsonObject | None
    output: JsonObject
    outcome: str = "always"
    case_key: str | None = None
    attempt: int = 1
    size: int = 0
    """Bytes of the output as JSON."""

    def values(self) -> JsonObject:
        values: JsonObject = {
            "status": NodeStatus.SUCCEEDED,
            "attempt": self.attempt,
            "outcome": self.outcome,
            "case_key": self.case_key,
            "output": self.output,
            "completed_at": utc_now(),
        }
        return values if self.inputs is None else {**values, "input": self.inputs}


async def complete_node(
    work: UnitOfWork, key: NodeKey, before: NodeRow, completion: Completion
) -> None:
    """Write a node's success."""
    await _write(work, key, before, completion.values())


async def add_attributes(work: UnitOfWork, run_id: Id, attributes: Mapping[str, str]) -> None:
    """Add attributes to a run, whose row the caller has locked.

    Raises NodeError when there are too many.
    """
    before = await read_attributes(work, run_id)
    after = {**before, **attributes}
    if len(after) > MAX_ATTRIBUTES:
        raise NodeError("too_many_attributes", f"A run has at most {MAX_ATTRIBUTES} attributes.")
    if after != before:
        mine = automation_run.c.id == run_id
        await work.execute(update(automation_run).where(mine).values(attributes=after))


async def read_attributes(work: UnitOfWork, run_id: Id) -> dict[str, str]:
    """All attributes of a run."""
    mine = automation_run.c.id == run_id
    return await work.scalar(select(automation_run.c.attributes).where(mine)) or {}


async def fail_node(
    work: UnitOfWork,
    key: NodeKey,
    before: NodeRow,
    *,
    code: str,
    message: str,
    attempt: int = 1,
    output: JsonObject | None = None,
) -> None:
    """Write a node's final failure, and the output that came of it all the same."""
    values: JsonObject = {
        "status": NodeStatus.FAILED,
        "attempt": attempt,
        "error": message[:ERROR_LIMIT],
        "error_code": code,
        "completed_at": utc_now(),
    }
    if output is not None:
        values["output"] = output
    await _write(work, key, before, values)


async def start_node(
    work: UnitOfWork, key: NodeKey, before: NodeRow, *, inputs: JsonObject, attempt: int
) -> None:
    """Write that an outside node runs, before its effect leaves the machine."""
    await _write(work, key, before, {**running(work, inputs, attempt), "due_at": None})


def running(work: Work, inputs: JsonObject, attempt: int) -> JsonObject:
    """The columns of a node run while an attempt is running."""
    return {
        "status": NodeStatus.RUNNING,
        "attempt": attempt,
        "input": inputs,
        "attempt_started_at": work.now,
    }


async def hold_node(work: UnitOfWork, key: NodeKey, before: NodeRow, *, seconds: float) -> None:
    """Write that an outside node waits for its turn to call, in the attempt that it is in."""
    values = {"status": NodeStatus.WAITING, "due_at": work.now_after(seconds)}
    await _write(work, key, before, values)


async def park_node(
    work: UnitOfWork, key: NodeKey, before: NodeRow, *, inputs: JsonObject, seconds: float | None
) -> None:
    """Write that a node waits, and until when if its wait ends by time."""
    values = {
        "status": NodeStatus.WAITING,
        "attempt": 1,
        "input": inputs,
        "due_at": None if seconds is None else work.now_after(seconds),
    }
    await _write(work, key, before, values)


async def record_attempt(
    work: UnitOfWork, key: NodeKey, *, attempt: int, code: str, message: str
) -> None:
    """Insert an attempt that failed and will be repeated."""
    started_at = select(node_run.c.attempt_started_at).where(*_this(key)).scalar_subquery()
    await work.execute(
        upsert(node_run_attempt)
        .values(
            run_id=key.run_id,
            node_id=key.node_id,
            scope_key=key.scope_key,
            attempt=attempt,
            workspace_id=key.workspace_id,
            error=message[:ERROR_LIMIT],
            error_code=code,
            started_at=started_at,
            completed_at=utc_now(),
        )
        .on_conflict_do_nothing()
    )


async def begin_attempt(work: UnitOfWork, key: NodeKey, attempt: int) -> None:
    """Show another attempt of a node that is running."""
    await work.execute(
        update(node_run)
        .where(*_this(key), node_run.c.status == NodeStatus.RUNNING)
        .values(attempt=attempt, attempt_started_at=work.now)
    )


async def close_nodes(work: UnitOfWork, run_ids: Collection[Id]) -> None:
    """Cancel the nodes that are still open in closed runs."""
    await work.execute(
        update(node_run)
        .where(node_run.c.run_id.in_(run_ids), node_run.c.status.in_(OPEN_NODE))
        .values(status=NodeStatus.CANCELLED, completed_at=work.now)
    )


async def _write(work: UnitOfWork, key: NodeKey, before: NodeRow, values: JsonObject) -> None:
    """Raises NodeWrittenError when the row is not what the gate has shown."""
    if before.status is None:
        new = {**identity(key), "started_at": key.began_at, **values}
        statement: Any = upsert(node_run).values(**new).on_conflict_do_nothing()
    else:
        statement = (
            update(node_run).where(*_this(key), node_run.c.status.in_(OPEN_NODE)).values(**values)
        )
    if await work.first(statement.returning(node_run.c.run_id)) is None:
        raise NodeWrittenError


def identity(key: NodeKey) -> JsonObject:
    """The columns that say which node a row is about."""
    return {
        "run_id": key.run_id,
        "node_id": key.node_id,
        "scope_key": key.scope_key,
        "workspace_id": key.workspace_id,
        "node_kind": key.kind,
    }


def _this(key: NodeKey) -> tuple[Any, ...]:
    return (
        node_run.c.run_id == key.run_id,
        node_run.c.node_id == key.node_id,
        node_run.c.scope_key == key.scope_key,
    )

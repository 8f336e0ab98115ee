"""Writing node runs behind the gate that every node passes, or putting one back.

Every write of a node's state raises NodeWrittenError when another execution of it was faster. A
node has begun before the transaction that writes it, which reads what the node needs first. It ends
when its end is written, and not when that transaction began.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs import rules
from models.automation.automation_runs.tables import automation_run, node_run, node_run_attempt
from models.automation.automations.rules.attributes import MAX_ATTRIBUTES
from models.core.base import Id, JsonObject
from runtime.clock import utc_now
from runtime.database import UnitOfWork, Work
from runtime.postgresql.statements import PreparedStatement
from runtime.rehearsal import replace_rows


@dataclass(frozen=True, slots=True)
class NodeRow:
    """The stored state of a node run; `status` None means there is none yet."""

    status: str | None
    attempt: int | None
    outcome: str | None
    case_key: str | None
    started_at: datetime | None = None
    attempt_started_at: datetime | None = None
    due_at: datetime | None = None

    @property
    def waits(self) -> bool:
        """True when the node was parked before, by an execution that is gone or was reset."""
        return self.status == rules.NodeStatus.WAITING

    def seconds_left(self, now: datetime) -> float | None:
        """The seconds a parked node waits on; None for one that time does not wake."""
        if self.due_at is None:
            return None
        return max(0.0, (self.due_at - now).total_seconds())


RUN_IS_OPEN: sa.ColumnElement[bool] = sa.and_(
    automation_run.c.id == sa.bindparam("run_id"),
    automation_run.c.status == sa.func.any(sa.literal(rules.ACTIVE_RUN, sa.ARRAY(sa.Text))),
)
"""The run of the parameter `run_id` is open: the gate, for statements that hold its row shared."""
_GRAPH = sa.bindparam("graph_checksum", type_=automation_run.c.graph_checksum.type)
EXECUTES_GRAPH: sa.ColumnElement[bool] = automation_run.c.graph_checksum == sa.func.coalesce(
    _GRAPH, automation_run.c.graph_checksum
)
"""The run executes the graph of the writer. One that waits may be moved to another (`open_runs`),
and processes keep graphs in memory."""
_PASSES = sa.and_(RUN_IS_OPEN, EXECUTES_GRAPH)
_OWN = sa.and_(
    node_run.c.run_id == automation_run.c.id,
    node_run.c.node_id == sa.bindparam("node_id"),
    node_run.c.scope_key == sa.bindparam("scope_key"),
)
_GATE = (
    sa.select(
        node_run.c.status,
        node_run.c.attempt,
        node_run.c.outcome,
        node_run.c.case_key,
        node_run.c.started_at,
        node_run.c.attempt_started_at,
        node_run.c.due_at,
    )
    .select_from(automation_run.outerjoin(node_run, _OWN))
    .where(_PASSES)
)
# Shared, so that the nodes of a run write side by side; a cancel takes the row alone.
_SHARED = PreparedStatement(_GATE.with_for_update(read=True, of=automation_run))
_EXCLUSIVE = PreparedStatement(_GATE.with_for_update(of=automation_run))


async def pass_gate(
    work: UnitOfWork,
    run_id: Id,
    node_id: str,
    scope_key: str,
    graph_checksum: str | None = None,
    *,
    exclusive: bool = False,
) -> NodeRow:
    """Enter an open run, whose row stays locked until the transaction ends.

    `exclusive` is for callers that then change the run's own status. Raises RunClosedError, also
    for a run that executes another graph than the given one.

    Cancel closes a run under the row's lock; a node holds that row shared while it writes, so a
    node either started before the cancel or never does.
    """
    gate = _EXCLUSIVE if exclusive else _SHARED
    place = {"run_id": run_id, "node_id": node_id, "scope_key": scope_key}
    row = await gate.first(work, {**place, "graph_checksum": graph_checksum})
    if row is None:
        raise rules.RunClosedError
    return NodeRow(*row)


async def hold_run(work: UnitOfWork, run_id: Id) -> rules.HeldRun | None:
    """A run, open or not, locked until the transaction ends."""
    this = sa.select(automation_run).where(automation_run.c.id == run_id)
    return await work.first(this.with_for_update(), of=rules.HeldRun)


async def share_run(work: UnitOfWork, run_id: Id | sa.ColumnElement[Id]) -> str | None:
    """Keep a run as it is until the transaction ends; gives its status, None when it is gone."""
    this = sa.select(automation_run.c.status).where(automation_run.c.id == run_id)
    status: str | None = await work.scalar(this.with_for_update(read=True))
    return status


ERROR_LIMIT = 2_000
"""Characters of an error that are kept; the rest would only repeat a foreign server's page."""


@dataclass(frozen=True, slots=True)
class NodeKey:
    """One node in one scope of a run; `began_at` is the time at which the caller began it.

    With `graph_checksum` it is written only while the run executes that graph.
    """

    workspace_id: Id
    run_id: Id
    node_id: str
    scope_key: str
    kind: str
    graph_checksum: str | None = None
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
            "status": rules.NodeStatus.SUCCEEDED,
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
        raise rules.NodeError(
            "too_many_attributes", f"A run has at most {MAX_ATTRIBUTES} attributes."
        )
    if after != before:
        mine = automation_run.c.id == run_id
        await work.execute(sa.update(automation_run).where(mine).values(attributes=after))


async def read_attributes(work: UnitOfWork, run_id: Id) -> dict[str, str]:
    mine = automation_run.c.id == run_id
    return await work.scalar(sa.select(automation_run.c.attributes).where(mine)) or {}


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
        "status": rules.NodeStatus.FAILED,
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
        "status": rules.NodeStatus.RUNNING,
        "attempt": attempt,
        "input": inputs,
        "attempt_started_at": work.now,
    }


async def hold_node(work: UnitOfWork, key: NodeKey, before: NodeRow, *, seconds: float) -> None:
    """Write that an outside node waits for its turn to call, in the attempt that it is in."""
    values = {"status": rules.NodeStatus.WAITING, "due_at": work.now_after(seconds)}
    await _write(work, key, before, values)


async def park_node(
    work: UnitOfWork, key: NodeKey, before: NodeRow, *, inputs: JsonObject, seconds: float | None
) -> None:
    """Write that a node waits, and until when if its wait ends by time."""
    values = {
        "status": rules.NodeStatus.WAITING,
        "attempt": 1,
        "input": inputs,
        "due_at": None if seconds is None else work.now_after(seconds),
    }
    await _write(work, key, before, values)


async def record_attempt(
    work: UnitOfWork, key: NodeKey, *, attempt: int, code: str, message: str
) -> None:
    """Insert an attempt that failed and will be repeated."""
    started_at = sa.select(node_run.c.attempt_started_at).where(*_this(key)).scalar_subquery()
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
        sa.update(node_run)
        .where(*_this(key), node_run.c.status == rules.NodeStatus.RUNNING)
        .values(attempt=attempt, attempt_started_at=work.now)
    )


async def close_nodes(work: UnitOfWork, run_ids: Collection[Id]) -> None:
    """Cancel the nodes that are still open in closed runs."""
    await work.execute(
        sa.update(node_run)
        .where(node_run.c.run_id.in_(run_ids), node_run.c.status.in_(rules.OPEN_NODE))
        .values(status=rules.NodeStatus.CANCELLED, completed_at=work.now)
    )


async def _write(work: UnitOfWork, key: NodeKey, before: NodeRow, values: JsonObject) -> None:
    """Raises NodeWrittenError when the row is not what the gate has shown."""
    if before.status is None:
        new = {**identity(key), "started_at": key.began_at, **values}
        statement: Any = upsert(node_run).values(**new).on_conflict_do_nothing()
    else:
        statement = (
            sa.update(node_run)
            .where(*_this(key), node_run.c.status.in_(rules.OPEN_NODE))
            .values(**values)
        )
    if await work.first(statement.returning(node_run.c.run_id)) is None:
        raise rules.NodeWrittenError


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


def _inserted(*names: str) -> PreparedStatement:
    """A new node run with these columns, if its run is open and it has none."""
    own = ("run_id", "node_id", "scope_key", "workspace_id", "node_kind", *names)
    values = sa.select(*(sa.bindparam(name, type_=node_run.c[name].type) for name in own))
    behind_gate = values.where(_PASSES).with_for_update(read=True, of=automation_run)
    return PreparedStatement(
        upsert(node_run).from_select(own, behind_gate).on_conflict_do_nothing()
    )


_ENDED = ("status", "attempt", "outcome", "case_key", "output", "completed_at")
_COMPLETE = _inserted(*_ENDED, "input", "started_at")
_START = _inserted("status", "attempt", "input", "attempt_started_at", "started_at")

_OPEN_RUN = sa.select(automation_run.c.id).where(_PASSES).with_for_update(read=True).cte("gate")

_COMPLETE_STARTED = PreparedStatement(
    sa.update(node_run)
    .where(
        node_run.c.run_id == _OPEN_RUN.c.id,
        node_run.c.node_id == sa.bindparam("of_node_id", type_=node_run.c.node_id.type),
        node_run.c.scope_key == sa.bindparam("of_scope_key", type_=node_run.c.scope_key.type),
        node_run.c.status == sa.func.any(sa.literal(rules.OPEN_NODE, sa.ARRAY(sa.Text))),
    )
    .values({name: sa.bindparam(f"new_{name}", type_=node_run.c[name].type) for name in _ENDED})
)


async def complete_with_gate(work: Work, key: NodeKey, completion: Completion) -> bool:
    """Pass the gate and write a success, for a node with no other effect than its output.

    Returns False when nothing was written: the run is closed, or the node has ended before.

    A statement that writes nothing means that the run is closed, or that the node was written
    before. The caller then passes the gate in a transaction to find out which. The same holds for
    `start_with_gate` and `complete_started`.
    """
    values = {
        **identity(key),
        "graph_checksum": key.graph_checksum,
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
    gate = {"graph_checksum": key.graph_checksum}
    return await _START.execute(work, {**values, **gate}) > 0


async def complete_started(work: Work, key: NodeKey, completion: Completion) -> bool:
    """Pass the gate and write the success of a node that is shown as running.

    Returns False when nothing was written: the run is closed, or the node has ended before.
    """
    values = {f"new_{name}": value for name, value in completion.values().items()}
    place = {"run_id": key.run_id, "of_node_id": key.node_id, "of_scope_key": key.scope_key}
    gate = {"graph_checksum": key.graph_checksum}
    return await _COMPLETE_STARTED.execute(work, {**place, **gate, **values}) > 0


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
        sa.select(node_run)
        .where(_node.run_id == run_id)
        .order_by(_node.started_at, _node.node_id, _node.scope_key),
        of=RecordedNode,
    )


async def is_run(work: UnitOfWork, run_id: Id) -> bool:
    """True when there is such a run."""
    return (
        await work.scalar(sa.select(automation_run.c.id).where(automation_run.c.id == run_id))
        is not None
    )


async def reopen_run(work: UnitOfWork, run_id: Id) -> None:
    """Let nodes of a run start again."""
    await replace_rows(
        work,
        automation_run,
        automation_run.c.id == run_id,
        status=rules.RunStatus.RUNNING.value,
        output=None,
        error=None,
        completed_at=None,
    )


async def forget_node(work: UnitOfWork, node: RecordedNode, earlier: Collection[str]) -> None:
    """Remove what is recorded of a node, and the ends of all that ended after it began.

    `earlier` are the nodes that lead to it, which had ended whatever clocks say. The iterations of
    a loop stay: they are what it has come to.

    The run is open again (`reopen_run`), in a transaction that is rolled back. What ended later
    than the node is open too, so that the node reads what it read then. The rows of our tables are
    otherwise as they are now.
    """
    is_node = sa.and_(
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
            sa.and_(_node.run_id == node.run_id, *later),
            status=rules.NodeStatus.RUNNING.value,
            output=None,
            completed_at=None,
        )
    attempt = node_run_attempt.c
    await work.execute(
        sa.delete(node_run_attempt).where(
            attempt.run_id == node.run_id,
            attempt.node_id == node.node_id,
            attempt.scope_key == node.scope_key,
        )
    )
    await work.execute(sa.delete(node_run).where(is_node))

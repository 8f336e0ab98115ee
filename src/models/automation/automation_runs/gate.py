"""The gate every node passes, in the transaction that writes its node run (promise I5).

Cancel closes a run under the row's lock; a node holds that row shared while it writes, so a node
either started before the cancel or never does.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ARRAY, ColumnElement, Text, and_, bindparam, func, literal, select

from models.automation.automation_runs.errors import RunClosedError
from models.automation.automation_runs.rows import HeldRun
from models.automation.automation_runs.rules import ACTIVE_RUN, NodeStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement


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
        return self.status == NodeStatus.WAITING

    def seconds_left(self, now: datetime) -> float | None:
        """The seconds a parked node waits on; None for one that time does not wake."""
        if self.due_at is None:
            return None
        return max(0.0, (self.due_at - now).total_seconds())


RUN_IS_OPEN: ColumnElement[bool] = and_(
    automation_run.c.id == bindparam("run_id"),
    automation_run.c.status == func.any(literal(ACTIVE_RUN, ARRAY(Text))),
)
"""The run of the parameter `run_id` is open: the gate, for statements that hold its row shared."""
_OWN = and_(
    node_run.c.run_id == automation_run.c.id,
    node_run.c.node_id == bindparam("node_id"),
    node_run.c.scope_key == bindparam("scope_key"),
)
_GATE = (
    select(
        node_run.c.status,
        node_run.c.attempt,
        node_run.c.outcome,
        node_run.c.case_key,
        node_run.c.started_at,
        node_run.c.attempt_started_at,
        node_run.c.due_at,
    )
    .select_from(automation_run.outerjoin(node_run, _OWN))
    .where(RUN_IS_OPEN)
)
_SHARED = PreparedStatement(_GATE.with_for_update(read=True, of=automation_run))
_EXCLUSIVE = PreparedStatement(_GATE.with_for_update(of=automation_run))


async def pass_gate(
    work: UnitOfWork, run_id: Id, node_id: str, scope_key: str, *, exclusive: bool = False
) -> NodeRow:
    """Enter an open run, whose row stays locked until the transaction ends.

    `exclusive` is for callers that go on to change the run's own status. Raises RunClosedError.
    """
    gate = _EXCLUSIVE if exclusive else _SHARED
    row = await gate.first(work, {"run_id": run_id, "node_id": node_id, "scope_key": scope_key})
    if row is None:
        raise RunClosedError
    return NodeRow(*row)


async def hold_run(work: UnitOfWork, run_id: Id) -> HeldRun | None:
    """A run, open or not, locked until the transaction ends."""
    this = select(automation_run).where(automation_run.c.id == run_id)
    return await work.first(this.with_for_update(), of=HeldRun)


async def share_run(work: UnitOfWork, run_id: Id | ColumnElement[Id]) -> str | None:
    """Keep a run as it is until the transaction ends; gives its status, None when it is gone."""
    this = select(automation_run.c.status).where(automation_run.c.id == run_id)
    status: str | None = await work.scalar(this.with_for_update(read=True))
    return status

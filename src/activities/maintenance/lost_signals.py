"""Lost signals: waits resolved in our rows, whose executions go on waiting (promise I7).

A signal is lost with whoever should have delivered it, or with a Temporal that was put back to an
earlier state: its executions then wait at nodes whose rows have ended long since.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Protocol

import structlog
from sqlalchemy import ColumnElement, and_, exists, or_, select
from temporalio.service import RPCError

from activities.maintenance.executions import Execution, describe_execution
from activities.maintenance.families import SweepContext
from models.automation.automation_runs.rules import OPEN_RUN, NodeStatus, RunStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.waits.store import HostedWait, wake
from models.automation.waits.tables import run_wait
from runtime.database import UnitOfWork
from runtime.outbox import Intent, outbox

log = structlog.get_logger()

_wait = run_wait.c
_RUN = automation_run.c.id == _wait.run_id
_UNDELIVERED = exists().where(outbox.c.subject_id == _wait.run_id, outbox.c.intent == Intent.SIGNAL)
_other, _node = run_wait.alias("other"), node_run.c
_NODE_OF_OTHER = and_(
    _node.run_id == _other.c.run_id,
    _node.node_id == _other.c.node_id,
    _node.scope_key == _other.c.scope_key,
)


class _ResolvedWait(HostedWait, Protocol):
    """A resolved wait; `undelivered` says that a node of its run still waits for the resolution."""

    undelivered: bool


async def resend_signals(context: SweepContext) -> int:
    """Tell executions again of the waits that ended longer ago than `grace`; how many waits.

    Only of runs that stand still, and only where the execution has dealt with all it was told: else
    it may yet come to the wait.
    """
    resent = 0
    async with context.database.transaction() as work:
        waits = await _resolved(work, context)
    for workflow_id, hosted in groupby(waits, attrgetter("workflow_id")):
        try:
            found = await describe_execution(context.client, workflow_id)
        except RPCError:
            # The next sweep comes back to it.
            log.warning("an execution could not be asked", workflow=workflow_id)
            continue
        lost = [wait for wait in hosted if _stands_still(wait, found)]
        async with context.database.transaction() as work:
            await wake(work, lost)
        resent += len(lost)
    return resent


def _stands_still(wait: _ResolvedWait, found: Execution | None) -> bool:
    if found is None or not found.sleeps:
        return False
    return wait.undelivered or not found.busy


async def _resolved(work: UnitOfWork, context: SweepContext) -> Sequence[_ResolvedWait]:
    """The resolved waits of runs that may stand still, the waits of one execution together."""
    before = work.now - context.grace
    undelivered = exists().where(
        _other.c.run_id == _wait.run_id,
        _other.c.resolved_at < before,
        _NODE_OF_OTHER,
        _node.status == NodeStatus.WAITING,
    )
    overdue = exists().where(
        _node.run_id == _wait.run_id, _node.status == NodeStatus.WAITING, _node.due_at < before
    )
    names = ("workspace_id", "run_id", "node_id", "scope_key", "workflow_id")
    stands: ColumnElement[bool] = or_(
        undelivered, overdue, automation_run.c.status == RunStatus.RUNNING
    )
    return await work.rows(
        select(*(_wait[name] for name in names), undelivered.label("undelivered"))
        .select_from(run_wait.join(automation_run, _RUN))
        .where(
            automation_run.c.status.in_(OPEN_RUN),
            _wait.workflow_id.is_not(None),
            _wait.resolved_at < before,
            ~_UNDELIVERED,
            stands,
        )
        .order_by(_wait.workflow_id),
        of=_ResolvedWait,
    )

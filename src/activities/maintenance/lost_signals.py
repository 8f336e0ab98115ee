"""Lost signals: waits resolved in our rows, whose executions go on waiting (promise I7)."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from operator import attrgetter

import structlog
from sqlalchemy import and_, exists, select
from temporalio import activity
from temporalio.service import RPCError

from activities.maintenance.executions import describe_execution
from activities.maintenance.families import SweepContext
from models.automation.automation_runs.rules import OPEN_RUN, NodeStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.waits.store import HostedWait, wake
from models.automation.waits.tables import run_wait
from runtime.database import Database
from runtime.outbox import Intent, outbox

log = structlog.get_logger()

_wait = run_wait.c
_RUN = automation_run.c.id == _wait.run_id
_NODE = and_(
    node_run.c.run_id == _wait.run_id,
    node_run.c.node_id == _wait.node_id,
    node_run.c.scope_key == _wait.scope_key,
)
_UNDELIVERED = exists().where(outbox.c.subject_id == _wait.run_id, outbox.c.intent == Intent.SIGNAL)


async def resend_signals(context: SweepContext) -> int:
    """Wake the nodes whose wait ended longer ago than `grace`; how many were woken.

    Only where the execution has dealt with all it was told: else it may yet come to the wait.
    """
    resent = 0
    waits = await _resolved(context.database, context.grace)
    for workflow_id, hosted in groupby(waits, attrgetter("workflow_id")):
        activity.heartbeat()
        try:
            found = await describe_execution(context.client, workflow_id)
        except RPCError:
            # The next sweep comes back to it.
            log.warning("an execution could not be asked", workflow=workflow_id)
            continue
        if found is None or not found.sleeps:
            continue
        lost = list(hosted)
        async with context.database.transaction() as work:
            await wake(work, lost)
        resent += len(lost)
    return resent


async def _resolved(database: Database, grace: timedelta) -> Sequence[HostedWait]:
    """The resolved waits of nodes that are still waiting, those of one execution together."""
    names = ("workspace_id", "run_id", "node_id", "scope_key", "workflow_id")
    async with database.transaction() as work:
        return await work.rows(
            select(*(_wait[name] for name in names))
            .select_from(run_wait.join(automation_run, _RUN).join(node_run, _NODE))
            .where(
                automation_run.c.status.in_(OPEN_RUN),
                node_run.c.status == NodeStatus.WAITING,
                _wait.workflow_id.is_not(None),
                _wait.resolved_at < work.now - grace,
                ~_UNDELIVERED,
            )
            .order_by(_wait.workflow_id),
            of=HostedWait,
        )

"""The reconciler of action runs: what was never started is started, what died is closed (I7)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, and_, exists, select
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus

from activities.maintenance.automation_runs import BATCH, GRACE
from activities.maintenance.executions import execution_status
from activities.maintenance.reconciling import reconcile
from models.automation.action_runs.acceptance import append_start
from models.automation.action_runs.closing import NODE_ENDED
from models.automation.action_runs.execution import abandon
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.tables import action_run
from models.automation.automation_runs.rules import OPEN_NODE, OPEN_RUN
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.base import Id
from runtime.database import Database
from runtime.families import Family
from runtime.outbox import Intent, outbox

_ENDS = {
    WorkflowExecutionStatus.CANCELED: (ActionRunStatus.CANCELLED, "Cancelled in Temporal."),
    WorkflowExecutionStatus.TERMINATED: (ActionRunStatus.FAILED, "Terminated in Temporal."),
    WorkflowExecutionStatus.TIMED_OUT: (ActionRunStatus.FAILED, "The execution timed out."),
    WorkflowExecutionStatus.FAILED: (ActionRunStatus.FAILED, "The execution failed."),
}
_SILENT = (ActionRunStatus.FAILED, "The execution ended without writing its result.")
_LEFT = (ActionRunStatus.CANCELLED, NODE_ENDED)


class ActionMaintenance:
    """Sweeps over open runs of actions."""

    def __init__(
        self,
        database: Database,
        client: Client,
        *,
        grace: timedelta = GRACE,
        batch: int = BATCH,
    ) -> None:
        self._database = database
        self._client = client
        self._grace = grace
        self._batch = batch

    @activity.defn(name="reconcile_actions")
    async def reconcile_actions(self) -> dict[str, int]:
        """One sweep. Safe to repeat: a start is idempotent by id, and closing is conditional."""
        return await reconcile(self._open_after, self._repair, ("restarted", "closed"))

    async def _open_after(self, last: Id | None) -> Sequence[Row[Any]]:
        run = action_run.c
        undelivered = exists().where(outbox.c.subject_id == run.id, outbox.c.intent == Intent.START)
        async with self._database.transaction() as work:
            statement = (
                select(run.id, run.workspace_id, run.action_id, run.kind, *_asking())
                .select_from(action_run.outerjoin(automation_run, _RUN).outerjoin(node_run, _NODE))
                .where(
                    run.status == ActionRunStatus.STARTED,
                    run.started_at < work.now - self._grace,
                    ~undelivered,
                )
                .order_by(run.id)
                .limit(self._batch)
            )
            return await work.rows(statement if last is None else statement.where(run.id > last))

    async def _repair(self, row: Row[Any]) -> str | None:
        asked = row.automation_run_id is not None
        if asked and not (row.run_status in OPEN_RUN and row.node_status in OPEN_NODE):
            return await self._close(row, *_LEFT)
        found = await execution_status(self._client, Family.ACTION_RUN.workflow_id(row.id))
        if found is WorkflowExecutionStatus.RUNNING:
            return None
        if found is None and asked:
            # The run of the node starts it, as long as it is open itself.
            return None
        if found is None:
            # What was done is in the rows, so that an execution that is gone can begin anew.
            async with self._database.transaction() as work:
                await append_start(work, row, "Restarted by the reconciler")
            return "restarted"
        return await self._close(row, *_ENDS.get(found, _SILENT))

    async def _close(self, row: Row[Any], status: ActionRunStatus, reason: str) -> str | None:
        async with self._database.transaction() as work:
            closed = await abandon(work, row.workspace_id, row.id, status, reason)
        return "closed" if closed else None


def _asking() -> tuple[Any, ...]:
    """The node that asked for a run, and how it stands."""
    return (
        action_run.c.automation_run_id,
        automation_run.c.status.label("run_status"),
        node_run.c.status.label("node_status"),
    )


_RUN = automation_run.c.id == action_run.c.automation_run_id
_NODE = and_(
    node_run.c.run_id == action_run.c.automation_run_id,
    node_run.c.node_id == action_run.c.node_id,
    node_run.c.scope_key == action_run.c.scope_key,
)

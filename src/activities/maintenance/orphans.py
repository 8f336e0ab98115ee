"""Ends open executions whose run is closed or does not exist (promise I7)."""

import structlog
from sqlalchemy import select
from temporalio import activity
from temporalio.service import RPCError

from activities.maintenance.families import SweepContext
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automation_runs.tables import automation_run
from runtime.ids import parse_id

log = structlog.get_logger()

TYPES = ("AutomationRun", "LoopChunk")
"""The workflows whose id begins with the family and the id of a run."""


async def end_orphans(context: SweepContext) -> int:
    """Terminate open executions whose row does not exist, cancel those whose row is closed.

    Gives how many were terminated.
    """
    terminated = 0
    started_before = (activity.info().started_time - context.grace).isoformat()
    query = (
        f"WorkflowType IN {TYPES} AND ExecutionStatus = 'Running'"
        f" AND StartTime < '{started_before}'"
    )
    async for listed in context.client.list_workflows(query):
        activity.heartbeat()
        try:
            terminated += await _end(context, listed.id)
        except RPCError:
            # It has ended meanwhile, or the next sweep comes back to it.
            log.warning("an execution could not be reconciled", workflow=listed.id)
    return terminated


async def _end(context: SweepContext, workflow_id: str) -> bool:
    """Whether the execution was terminated."""
    # `automation-run/{runId}`, and below it the parts of its long loops.
    run_id = parse_id(workflow_id.split("/")[1]) if "/" in workflow_id else None
    async with context.database.transaction() as work:
        status = await work.scalar(
            select(automation_run.c.status).where(automation_run.c.id == run_id)
        )
    handle = context.client.get_workflow_handle(workflow_id)
    if status is None:
        await handle.terminate(reason="No run of this id exists.")
        return True
    if status not in OPEN_RUN:
        await handle.cancel()
    return False

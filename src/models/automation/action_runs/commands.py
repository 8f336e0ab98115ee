"""Asking for runs and cancelling them. The answer is final when its transaction commits."""

from models.automation.action_runs.acceptance import ActionRequest, accept, runnable_action
from models.automation.action_runs.execution import abandon, hold_caller
from models.automation.action_runs.queries import get_run, load_run
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.shapes import ActionRunDetail, RunAction
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.sources.outbound_limits.turns import leave_lines
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.families import Family


async def run_action(
    work: UnitOfWork, actor: Actor, action_id: Id, run_id: Id, body: RunAction
) -> None:
    """Accept a run. Raises `NotFoundError`, and `ValidationError` for a disabled action."""
    action = await runnable_action(work, actor.workspace_id, action_id)
    await accept(work, actor, action, ActionRequest(run_id, body.input))


async def cancel_run(work: UnitOfWork, actor: Actor, action_id: Id, run_id: Id) -> ActionRunDetail:
    """Make an open run cancelled for ever; a finished one is returned unchanged.

    The row's lock makes this final: a step starts before it or not at all. What a step has called
    by then may still end, and is not shown.
    """
    await hold_caller(work, actor.workspace_id, run_id)
    await load_run(work, actor.workspace_id, action_id, run_id, lock=True)
    # Waiting for the lock takes time: no step that started meanwhile may seem to start after this.
    work.now = utc_now()
    if await abandon(work, actor.workspace_id, run_id, ActionRunStatus.CANCELLED):
        await lifecycle.cancel_executions(work, Family.ACTION_RUN, actor.workspace_id, [run_id])
        await leave_lines(work, actor.workspace_id, [run_id])
    return await get_run(work, actor, action_id, run_id)

"""The workflow of one action run: PostgreSQL says what is next, Temporal carries it out."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.action_runs.transactions import ActionRunActivities, StepCall, Turn
    from runtime.families import Queue
    from workflows.endings import show_end
    from workflows.policies import HEARTBEAT_TIMEOUT, STEP_TIMEOUT, node_retry
    from workflows.transactions import transact

FIRST_PAUSE = timedelta(milliseconds=100)
LONGEST_PAUSE = timedelta(minutes=1)
PAUSE_SHARE = 10
"""A called run is looked for at pauses of this part of the time it has taken so far."""


@workflow.defn(name="ActionRun")
class ActionRun:
    """One run of an action that was asked for by itself; the argument is the run's id."""

    @workflow.run
    async def run(self, run_id: str) -> str:
        try:
            status = await self._execute(run_id)
        except asyncio.CancelledError:
            # After a cancel through the API the row is closed already and this changes nothing.
            await transact(ActionRunActivities.close_cancelled_action_run, run_id)
            raise
        show_end(status, "The action run failed.")
        return status

    async def _execute(self, run_id: str) -> str:
        began = workflow.now()
        while (turn := await transact(ActionRunActivities.advance, run_id)).ended is None:
            if turn.step_id is None:
                taken = (workflow.now() - began) / PAUSE_SHARE
                pause = min(max(taken, FIRST_PAUSE), LONGEST_PAUSE)
                await workflow.sleep(pause, summary="Wait for the automation")
            else:
                await self._outside(StepCall(run_id, turn.step_id), turn)
        return turn.ended

    async def _outside(self, call: StepCall, turn: Turn) -> None:
        try:
            await workflow.execute_activity_method(
                ActionRunActivities.step,
                call,
                task_queue=Queue.IO,
                summary=call.step_id,
                start_to_close_timeout=STEP_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=node_retry(turn.retry),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            await transact(ActionRunActivities.close_lost_step, call)

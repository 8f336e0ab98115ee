"""The workflow of one action run: PostgreSQL decides the next step, Temporal executes it."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.action_runs.transactions import ActionRunActivities, AttemptCall, StepCall, Turn
    from activities.contracts import CalledRun
    from activities.endings import CLOSED
    from runtime.temporal.workflow_kinds import Queue
    from workflows.calls import call_outside, end_as_row, run_called, transact
    from workflows.policies import HEARTBEAT_TIMEOUT, STEP_TIMEOUT, node_retry


@workflow.defn(name="ActionRun")
class ActionRun:
    """One run of an action; the argument is the run's id.

    A run that a node requested is a child of the node's run, with the retries of the node.
    """

    @workflow.run
    async def run(self, run_id: str) -> str:
        try:
            status = await self._execute(run_id)
        except asyncio.CancelledError:
            # After a cancel through the API, or after its end, the row is closed already and this
            # changes nothing.
            await transact(ActionRunActivities.close_cancelled_action_run, run_id)
            status = CLOSED
        return await end_as_row(status, "The action run")

    async def _execute(self, run_id: str) -> str:
        info = workflow.info()
        last = info.retry_policy is None or info.attempt >= info.retry_policy.maximum_attempts
        if info.attempt > 1:
            attempt = AttemptCall(run_id, info.attempt)
            await transact(ActionRunActivities.begin_attempt, attempt)
        while (turn := await transact(ActionRunActivities.advance, run_id)).ended is None:
            call = StepCall(run_id, turn.step_id, info.attempt, last)
            if turn.called is None:
                await self._outside(call, turn)
            else:
                await _wait(turn.called, turn.seconds)
                await transact(ActionRunActivities.end_call, call)
        return turn.ended

    async def _outside(self, call: StepCall, turn: Turn) -> None:
        """Every attempt of a step. Raises ApplicationError when the run is to be tried again."""

        async def attempts(queue: Queue, tried: int) -> None:
            await workflow.execute_activity_method(
                ActionRunActivities.step,
                call,
                task_queue=queue,
                summary=call.step_id,
                start_to_close_timeout=STEP_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=node_retry(turn.retry, tried),
            )

        try:
            await call_outside(attempts)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            if not call.last:
                raise _again(error) from error
            # A worker that died may not have written the end of the step.
            await transact(ActionRunActivities.close_lost_step, call)


async def _wait(called: CalledRun, seconds: float) -> None:
    """Wait for the end of a called run; one that takes too long continues without its caller."""
    waiting: asyncio.Task[Any] = asyncio.create_task(run_called(called, outlives=True))
    # Without this, asyncio logs the failure of a task that is no longer awaited.
    waiting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await workflow.wait([waiting], timeout=seconds)
    finally:
        waiting.cancel()
    if waiting.done() and not waiting.cancelled():
        waiting.result()


def _again(error: ActivityError) -> ApplicationError:
    """The failure of an attempt after which the run is tried again."""
    failure = error.cause
    if not isinstance(failure, ApplicationError):
        return ApplicationError("The step was lost.", type="timeout")
    return ApplicationError(
        failure.message, type=failure.type, next_retry_delay=failure.next_retry_delay
    )

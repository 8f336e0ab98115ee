"""The workflow of one operation over runs."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.run_operations import RunOperationActivities
    from runtime.temporal.workflow_kinds import Queue
    from workflows import policies
    from workflows.calls import end_as_row


@workflow.defn(name="RunOperation")
class RunOperation:
    """One operation; the argument is its id. It ends when it is paused, and restarts after."""

    @workflow.run
    async def run(self, operation_id: str) -> str:
        try:
            outcome = await _advance()
            while not isinstance(outcome, str):
                if outcome:
                    await workflow.sleep(outcome, summary="Rate limit or capacity")
                if policies.has_long_history():
                    workflow.continue_as_new(operation_id)
                outcome = await _advance()
        except (ActivityError, asyncio.CancelledError) as error:
            # A second cancel must not leave the row of the operation open.
            outcome = await asyncio.shield(_end(is_cancelled_exception(error)))
        return await end_as_row(outcome, "The operation", "; completed work is kept")


async def _advance() -> str | float:
    return await workflow.execute_activity_method(
        RunOperationActivities.advance,
        workflow.info().workflow_id,
        task_queue=Queue.BULK,
        start_to_close_timeout=policies.JOB_TIMEOUT,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        retry_policy=policies.JOB_RETRY,
    )


async def _end(cancelled: bool) -> str:
    return await workflow.execute_activity_method(
        RunOperationActivities.end,
        args=[workflow.info().workflow_id, cancelled],
        task_queue=Queue.BULK,
        start_to_close_timeout=policies.JOB_TIMEOUT,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        retry_policy=policies.DATABASE_RETRY,
        summary="End",
    )

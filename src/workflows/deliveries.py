"""The workflow of deliveries from before they were standalone activities (ADR 0116)."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.deliveries.attempts import AttemptReply, DeliveryActivities
    from activities.endings import CLOSED
    from workflows.calls import call_outside, end_as_row, transact
    from workflows.policies import ATTEMPT_TIMEOUT, DATABASE_RETRY, HEARTBEAT_TIMEOUT


_SUMMARY = "Next attempt"


@workflow.defn(name="Delivery")
class Delivery:
    """One delivery; the argument is its id. The row says when it is attempted again."""

    @workflow.run
    async def run(self, delivery_id: str) -> str:
        try:
            status = await self._deliver(delivery_id)
        except (ActivityError, asyncio.CancelledError) as error:
            if not is_cancelled_exception(error):
                raise
            # After a cancel of ours the row is closed already, and this changes nothing.
            await transact(DeliveryActivities.close_cancelled_delivery, delivery_id)
            status = CLOSED
        return await end_as_row(status, "The delivery")

    async def _deliver(self, delivery_id: str) -> str:
        while (reply := await self._attempt(delivery_id)).seconds is not None:
            await workflow.sleep(timedelta(seconds=reply.seconds), summary=_SUMMARY)
        return reply.status

    async def _attempt(self, delivery_id: str) -> AttemptReply:
        return await call_outside(
            lambda queue, _: workflow.execute_activity_method(
                DeliveryActivities.attempt_delivery,
                delivery_id,
                task_queue=queue,
                start_to_close_timeout=ATTEMPT_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=DATABASE_RETRY,
            )
        )

"""The end of an execution: as its row did, so that Temporal's own lists are true (ADR 0020)."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.endings import CLOSED, EndingActivities
    from models.core.lifecycle.rules import REPORTED_FAILURES
    from workflows.transactions import transact

CANCEL_ON_ITS_WAY = timedelta(seconds=10)
"""The time an execution whose row was cancelled waits for its own cancel, which follows the row."""

_CANCELLED = "cancelled"


async def end_as_row(status: str, label: str, detail: str = "") -> str:
    """End the execution as its row ended: with this status, or `closed` for one to be asked for.

    It is asked for when somebody else has closed the row, or an earlier try of the last
    transaction, whose reply was lost. Raises ApplicationError, whose type is the status, for a row
    that failed or timed out, with `label` and `detail` around it as the message operators read; and
    CancelledError for a cancelled one.
    """
    if status == CLOSED:
        status = await transact(EndingActivities.read_end, workflow.info().workflow_id)
    if status in REPORTED_FAILURES:
        message = f"{label} {status.replace('_', ' ')}{detail}."
        raise ApplicationError(message, type=status, non_retryable=True)
    if status == _CANCELLED:
        if workflow.cancellation_reason() is None:
            # Only an execution that is asked to can end as cancelled.
            await workflow.sleep(CANCEL_ON_ITS_WAY, summary="The row is cancelled")
        else:
            raise asyncio.CancelledError
    return status

"""How an execution ends: as its row did, so that Temporal's own lists are true (ADR 0020)."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError

_ENDS_AS_ITS_ROW = "ends-as-its-row"
"""Before, every execution completed. To be deprecated when no failed one of that time is kept."""
_FAILURES = frozenset({"failed", "timed_out"})
_CANCELLED = "cancelled"


def show_end(status: str, reason: str) -> None:
    """End the execution as its row ended, with this status.

    Raises ApplicationError, whose type is the status, for a row that failed or timed out, and
    CancelledError for a cancelled one whose execution was cancelled, too.
    """
    failed = status in _FAILURES
    cancelled = status == _CANCELLED and workflow.cancellation_reason() is not None
    if not (failed or cancelled) or not workflow.patched(_ENDS_AS_ITS_ROW):
        return
    if failed:
        raise ApplicationError(reason, type=status, non_retryable=True)
    raise asyncio.CancelledError

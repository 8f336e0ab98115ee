"""How an execution ends: as its row did, so that Temporal's own lists are true (ADR 0020)."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError

_FAILURES = frozenset({"failed", "timed_out"})
_CANCELLED = "cancelled"


def show_end(status: str, reason: str) -> None:
    """End the execution as its row ended, with this status.

    Raises ApplicationError, whose type is the status, for a row that failed or timed out, and
    CancelledError for a cancelled one whose execution was cancelled, too.
    """
    failed = status in _FAILURES
    cancelled = status == _CANCELLED and workflow.cancellation_reason() is not None
    if failed:
        raise ApplicationError(reason, type=status, non_retryable=True)
    if cancelled:
        raise asyncio.CancelledError

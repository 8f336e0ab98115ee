"""The state of an execution in Temporal, strongly consistent: `describe`, never visibility."""

from dataclasses import dataclass
from typing import Any

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowHistoryEventFilterType,
)
from temporalio.service import RPCError, RPCStatusCode

from models.core.lifecycle.rules import REPORTED_FAILURES
from runtime.memos import RESTARTS


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution; `attempt` counts the tries of the workflow task that is due, 0 for none.

    `restarts` counts the executions that ended before it without closing its row; `failure` is the
    type of the error that a failed one ended with.
    """

    status: WorkflowExecutionStatus
    attempt: int
    restarts: int = 0
    failure: str | None = None
    busy: bool = False
    """True while an activity or a child of it is under way."""

    @property
    def sleeps(self) -> bool:
        """True when it is open and has dealt with all it was told."""
        return self.status is WorkflowExecutionStatus.RUNNING and self.attempt == 0

    @property
    def reported_an_end(self) -> bool:
        """True when its code came to an end, which is the end of its row (ADR 0020)."""
        completed = self.status is WorkflowExecutionStatus.COMPLETED
        return completed or self.failure in REPORTED_FAILURES


async def describe_execution(client: Client, workflow_id: str) -> Execution | None:
    """The execution; None when Temporal knows none of this id."""
    handle = client.get_workflow_handle(workflow_id)
    try:
        described = await handle.describe()
        failed = described.status is WorkflowExecutionStatus.FAILED
        failure = await _failure(handle) if failed else None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    assert described.status is not None, "Temporal always says"
    raw = described.raw_description
    busy = bool(raw.pending_activities or raw.pending_children)
    restarts = await described.memo_value(RESTARTS, 0, type_hint=int)
    attempt = raw.pending_workflow_task.attempt
    return Execution(described.status, attempt, restarts, failure, busy)


async def _failure(handle: WorkflowHandle[Any, Any]) -> str | None:
    """The type of the error in the last event."""
    closed = WorkflowHistoryEventFilterType.CLOSE_EVENT
    async for event in handle.fetch_history_events(event_filter_type=closed):
        failure = event.workflow_execution_failed_event_attributes.failure
        return failure.application_failure_info.type
    return None

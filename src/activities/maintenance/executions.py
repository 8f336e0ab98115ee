"""What Temporal says of an execution, strongly consistent: `describe`, never visibility."""

from dataclasses import dataclass

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution; `attempt` counts the tries of the workflow task that is due, 0 for none."""

    status: WorkflowExecutionStatus
    attempt: int

    @property
    def sleeps(self) -> bool:
        """Whether it is open and has dealt with all it was told."""
        return self.status is WorkflowExecutionStatus.RUNNING and self.attempt == 0


async def describe_execution(client: Client, workflow_id: str) -> Execution | None:
    """The execution; None when Temporal knows none of this id."""
    try:
        described = await client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    assert described.status is not None, "Temporal always says"
    return Execution(described.status, described.raw_description.pending_workflow_task.attempt)

"""What Temporal says of an execution, strongly consistent: `describe`, never visibility."""

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode


async def execution_status(client: Client, workflow_id: str) -> WorkflowExecutionStatus | None:
    """The status of an execution; None when Temporal knows none of this id."""
    try:
        return (await client.get_workflow_handle(workflow_id).describe()).status
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise

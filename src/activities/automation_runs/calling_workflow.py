"""The execution that called an activity: a run's own, or that of a part of one of its loops."""

from temporalio import activity

from activities.automation_runs.node_execution import GatedNode
from models.automation.automation_runs import suspension


def calling_workflow_id() -> str:
    """The id of the workflow that called."""
    workflow_id = activity.info().workflow_id
    assert workflow_id is not None, "a workflow called"
    return workflow_id


async def show_running(node: GatedNode) -> None:
    """Show the run of a node that wakes as running."""
    run_id = node.invocation.key.run_id
    await suspension.resume(
        node.work, run_id, suspension.execution_key(run_id, calling_workflow_id())
    )

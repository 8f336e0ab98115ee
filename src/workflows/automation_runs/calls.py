"""A called automation: its run is a child of the run that waits for it (decisions D2)."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, ChildWorkflowError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from activities.automation_runs.waits import WaitActivities
    from activities.contracts import CalledRun
    from activities.outbox.deliveries import search_attributes
    from runtime.families import Family, Queue
    from workflows.transactions import transact

FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(hours=1)
"""Between two looks at a run that is under way, but not as our child."""


async def run_called(called: CalledRun) -> None:
    """Run the child to its end, whatever the end; its row says what it was.

    Cancelling this cancels the child. It has our priority: who waits for us waits for it, too.
    """
    facts = called.facts
    try:
        await workflow.execute_child_workflow(
            "AutomationRun",
            called.run_id,
            id=Family.AUTOMATION_RUN.workflow_id(called.run_id),
            task_queue=Queue.AUTOMATION,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
            cancellation_type=workflow.ChildWorkflowCancellationType.TRY_CANCEL,
            static_summary=facts["summary"],
            search_attributes=search_attributes(called.workspace_id, facts, Family.AUTOMATION_RUN),
        )
    except WorkflowAlreadyStartedError:
        await _until_ended(called)
    except ChildWorkflowError as ended:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        if not isinstance(ended.cause, ApplicationError):
            # It did not end by itself: an operator terminated or cancelled it, or the API did.
            await transact(WaitActivities.close_called, called.run_id)


async def _until_ended(called: CalledRun) -> None:
    """Look whether the run has ended, ever less often: a tenth of what it has taken later at most.

    The reconciler started it while the caller's worker was away.
    """
    began = workflow.time()
    while not await transact(WaitActivities.called_ended, called.run_id):
        taken = timedelta(seconds=workflow.time() - began)
        await workflow.sleep(min(max(FIRST_PAUSE, taken / 10), LONGEST_PAUSE))

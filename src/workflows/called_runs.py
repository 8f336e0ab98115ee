"""A workflow starts a run it has accepted as its child, and waits for its end (decisions D2).

A node that calls an automation, a node or a step that runs one, a node that runs an action, and the
fire of a schedule all wait this way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    TimeoutError,  # noqa: A004  # Temporal's own
    WorkflowAlreadyStartedError,
)

with workflow.unsafe.imports_passed_through():
    from activities.called_runs import CalledRunActivities
    from activities.contracts import CalledRun
    from runtime.families import Family, Queue
    from runtime.memos import memo_of
    from runtime.search_attributes import search_attributes
    from workflows.transactions import transact

FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(hours=1)
"""Between two checks of a run that is under way, but not as our child."""
LONGEST_IN_LINE = timedelta(seconds=10)
"""Between two checks of a run that waits for its turn: its place is counted from then on."""

_WORKFLOWS: Mapping[Family, str] = {
    Family.AUTOMATION_RUN: "AutomationRun",
    Family.ACTION_RUN: "ActionRun",
    Family.DATA_SOURCE_REFRESH: "DataSourceRefresh",
    Family.MOUNT_SYNC: "MountSync",
    Family.RESOURCE_IMPORT: "ResourceImport",
}


@dataclass(frozen=True, slots=True)
class Attempts:
    """The retries of a child, and the time of each try."""

    retry: RetryPolicy | None = None
    timeout: timedelta | None = None


async def run_called(
    run: CalledRun, attempts: Attempts | None = None, *, outlives: bool = False
) -> None:
    """Run the child to its end, whatever the end; its row says what it was.

    The row stays open only if the time of the last attempt is over. Cancelling this cancels the
    child, unless it `outlives` us: then only our rows do. It has our fairness key: who waits for us
    waits for it, too.
    """
    attempts = attempts or Attempts()
    family = Family(run.family)
    if run.in_line:
        await _until(CalledRunActivities.has_turn, run, LONGEST_IN_LINE)
    try:
        await workflow.execute_child_workflow(
            _WORKFLOWS[family],
            run.run_id,
            id=family.workflow_id(run.run_id),
            task_queue=Queue.AUTOMATION,
            run_timeout=attempts.timeout,
            retry_policy=attempts.retry,
            # One that ended before, as after a reset of ours, ends again at once as its row did.
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            parent_close_policy=_PARENT_CLOSE[outlives],
            cancellation_type=_CANCELLATION[outlives],
            static_summary=run.request["summary"],
            memo=memo_of(run.request),
            search_attributes=search_attributes(run.workspace_id, run.request, family),
        )
    except WorkflowAlreadyStartedError:
        # Another workflow's child has this id: that of an earlier attempt, or of before a reset.
        await _until(CalledRunActivities.has_ended, run, LONGEST_PAUSE)
    except ChildWorkflowError as ended:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        if not isinstance(ended.cause, ApplicationError | TimeoutError):
            # It did not end by itself: an operator terminated or cancelled it, or the API did.
            await transact(CalledRunActivities.close, run)


_PARENT_CLOSE: Mapping[bool, workflow.ParentClosePolicy] = {
    False: workflow.ParentClosePolicy.REQUEST_CANCEL,
    True: workflow.ParentClosePolicy.ABANDON,
}
_CANCELLATION: Mapping[bool, workflow.ChildWorkflowCancellationType] = {
    False: workflow.ChildWorkflowCancellationType.TRY_CANCEL,
    True: workflow.ChildWorkflowCancellationType.ABANDON,
}


async def _until(
    holds: Callable[[CalledRunActivities, CalledRun], Awaitable[bool]],
    run: CalledRun,
    longest: timedelta,
) -> None:
    """Check whether it holds, ever less often: a tenth of the time so far later at most."""
    began = workflow.time()
    while not await transact(holds, run):
        taken = timedelta(seconds=workflow.time() - began)
        await workflow.sleep(min(max(FIRST_PAUSE, taken / 10), longest))

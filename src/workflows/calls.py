"""Calls of workflows: a transaction, an activity outside, a run as a child; ends as their rows."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
)
from temporalio.exceptions import (
    TimeoutError as TemporalTimeoutError,  # Temporal's own
)

with workflow.unsafe.imports_passed_through():
    from activities.contracts import CalledRun
    from activities.endings import CLOSED, CalledRunActivities, EndingActivities
    from activities.turns import HELD, OVERFLOWED, POSTPONED
    from models.automation.automations.rules.planner.plan import PlanNode
    from models.core.lifecycle.rules import REPORTED_FAILURES
    from models.sources.outbound_limits.rules import signal_of
    from runtime.temporal.executions import search_attributes
    from runtime.temporal.workflow_kinds import Queue, WorkflowKind, memo_of
    from workflows.policies import DATABASE_PATIENCE, DATABASE_RETRY, DATABASE_TIMEOUT


MARKS: Mapping[str, str] = {
    "running": "▶",
    "waiting": "⏸",
    "succeeded": "✔",
    "failed": "✖",
    "skipped": "-",
    "cancelled": "⊘",
}


SUMMARY_BYTES = 200
"""The size Temporal takes of the summary of an activity or timer; a label may be longer."""


_Argument = TypeVar("_Argument")


_Reply = TypeVar("_Reply")


async def transact(
    method: Callable[[Any, _Argument], Awaitable[_Reply]],
    argument: _Argument,
    summary: str | None = None,
) -> _Reply:
    """Execute an activity method as a local activity, retried while the database is away."""
    return await workflow.execute_local_activity_method(
        method,
        argument,
        start_to_close_timeout=DATABASE_TIMEOUT,
        retry_policy=DATABASE_RETRY,
        local_retry_threshold=DATABASE_PATIENCE,
        summary=summary,
    )


def summary_of(*nodes: PlanNode) -> str:
    """The labels of nodes, cut to what Temporal takes as a summary."""
    return shortened(", ".join(node.label or node.id for node in nodes))


def shortened(text: str) -> str:
    """The text, cut to what Temporal takes as a summary."""
    # A character at the cut may be incomplete, which Temporal would refuse.
    return text.encode()[:SUMMARY_BYTES].decode(errors="ignore")


FIRST_OUTSIDE_PAUSE = timedelta(seconds=2)


LONGEST_OUTSIDE_PAUSE = timedelta(seconds=30)


_NOT_MADE = frozenset({OVERFLOWED, POSTPONED, HELD})


T = TypeVar("T")


async def call_outside(call: Callable[[Queue, int], Awaitable[T]]) -> T:
    """Make a call until it begins; it gets its queue, and the number of its attempts so far.

    The call of a workspace that holds its share of `io` waits in the queue beside it (ADR 0075).
    That of work in quarantine is made again after pauses, which grow so that a long wait has a
    short history, and that of a place with a limit when it has its turn (ADR 0099). Raises the
    other errors of the call.
    """
    queue, tried, pause = Queue.IO, 0, FIRST_OUTSIDE_PAUSE
    while True:
        try:
            return await call(queue, tried)
        except ActivityError as error:
            cause = error.cause
            if not isinstance(cause, ApplicationError) or cause.type not in _NOT_MADE:
                raise
            # Attempts that were not made must not count against the retries of the node.
            tried += cause.details[0]
        if cause.type == OVERFLOWED:
            queue = Queue.IO_OVERFLOW
        elif cause.type == HELD:
            queue = Queue.IO
            await _turn(cause.details[1], cause.details[2])
        else:
            await workflow.sleep(pause)
            pause = min(2 * pause, LONGEST_OUTSIDE_PAUSE)


async def _turn(seconds: float, key: str) -> None:
    """Wait until a call may ask again, or until a signal says that it is its turn."""
    signal = asyncio.Event()

    def tell() -> None:
        signal.set()

    name = signal_of(key)
    workflow.set_signal_handler(name, tell)
    try:
        await workflow.wait_condition(signal.is_set, timeout=seconds)
    except TimeoutError:
        pass
    finally:
        # A signal that comes later would otherwise find the handler of a call that is over.
        workflow.set_signal_handler(name, None)


FIRST_CHECK_PAUSE = timedelta(seconds=1)


# The run of another execution may take weeks, and each check is an event of a history.
LONGEST_CHECK_PAUSE = timedelta(hours=1)
"""Seconds between two checks of a run that runs, but not as our child."""


LONGEST_IN_LINE = timedelta(seconds=10)
"""Between two checks of a run that waits for its turn: its place is counted from then on."""


_WORKFLOWS: Mapping[WorkflowKind, str] = {
    WorkflowKind.AUTOMATION_RUN: "AutomationRun",
    WorkflowKind.ACTION_RUN: "ActionRun",
    WorkflowKind.DATA_SOURCE_REFRESH: "DataSourceRefresh",
    WorkflowKind.MOUNT_SYNC: "MountSync",
    WorkflowKind.RESOURCE_IMPORT: "ResourceImport",
}


@dataclass(frozen=True, slots=True)
class Attempts:
    """The retries of a child, and the time of each try."""

    retry: RetryPolicy | None = None
    timeout: timedelta | None = None


async def run_called(
    run: CalledRun, attempts: Attempts | None = None, *, outlives: bool = False
) -> None:
    """Run the child to its end. Its row has the outcome.

    The row stays open only if the time of the last attempt is over. Cancelling this cancels the
    child, unless it `outlives` us: then only our rows do. It has our fairness key, because callers
    that wait for us wait for it, too.

    A node that calls an automation, a node or a step that runs one, a node that runs an action, and
    the fire of a schedule all wait this way.
    """
    attempts = attempts or Attempts()
    workflow_kind = WorkflowKind(run.workflow_kind)
    if run.in_line:
        await _until(CalledRunActivities.has_turn, run, LONGEST_IN_LINE)
    try:
        await workflow.execute_child_workflow(
            _WORKFLOWS[workflow_kind],
            run.run_id,
            id=workflow_kind.workflow_id(run.run_id),
            task_queue=Queue.AUTOMATION,
            run_timeout=attempts.timeout,
            retry_policy=attempts.retry,
            # One that ended before, as after a reset of ours, ends again at once as its row did.
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            parent_close_policy=_PARENT_CLOSE[outlives],
            cancellation_type=_CANCELLATION[outlives],
            static_summary=run.request["summary"],
            memo=memo_of(run.request),
            search_attributes=search_attributes(run.workspace_id, run.request, workflow_kind),
        )
    except WorkflowAlreadyStartedError:
        # Another workflow's child has this id: that of an earlier attempt, or of before a reset.
        await _until(CalledRunActivities.has_ended, run, LONGEST_CHECK_PAUSE)
    except ChildWorkflowError as ended:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # Python reports a cancel of ours as the failure of the child, which must not count as
            # its end.
            raise asyncio.CancelledError from None
        if not isinstance(ended.cause, ApplicationError | TemporalTimeoutError):
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
        await workflow.sleep(min(max(FIRST_CHECK_PAUSE, taken / 10), longest))


CANCEL_ON_ITS_WAY = timedelta(seconds=10)
"""The time an execution whose row was cancelled waits for its own cancel, which follows the row."""


_CANCELLED = "cancelled"


async def end_as_row(status: str, label: str, detail: str = "") -> str:
    """End the execution as its row ended. `closed` is a status that is still to be read.

    It is read when another transaction has closed the row, or an earlier attempt of the last one,
    whose reply was lost. Raises ApplicationError, whose type is the status, for a row that failed
    or timed out, with `label` and `detail` around it as the message operators read; and
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
            await workflow.sleep(CANCEL_ON_ITS_WAY, summary="Cancelled, waiting for the request")
        else:
            raise asyncio.CancelledError
    return status

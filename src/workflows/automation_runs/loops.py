"""Loops: open, decide on the next iteration, run long ones in chunks as children, close.

See ADR 0019.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from activities import contracts as activity_contracts
    from activities.automation_runs.loops import LoopActivities
    from models.automation.automations.rules.planner.plan import PlanNode
    from models.automation.automations.rules.planner.planner import PlanState
    from models.automation.automations.rules.planner.protocol import NextIteration, NodeRef
    from runtime.derived_ids import derived_id
    from runtime.temporal.workflow_kinds import Queue, WorkflowKind
    from workflows.automation_runs.waits import Waits
    from workflows.calls import shortened, summary_of, transact


OWN_ITEMS = 100
"""Iterations that an execution runs itself; more run in executions of their own (ADR 0019)."""
OWN_EVENTS = 2_000
"""Length of a history from which on every loop runs in executions of its own."""

Parked = Callable[[bool], None]
Hosted = Callable[[str | None], None]
"""Called with the place where a loop's iterations run, and with None when they have ended."""


class LoopSteps:
    def __init__(self, run_id: str, plan_state: PlanState, waits: Waits) -> None:
        self._run_id = run_id
        self._plan_state = plan_state
        self._waits = waits

    async def step(
        self, node: PlanNode, ref: NodeRef, parked: Parked, hosted: Hosted
    ) -> activity_contracts.NodeEnd:
        """Do what a loop needs next: open it, decide on its next iteration, or close it."""
        call = activity_contracts.NodeCall(self._run_id, ref.node_id, ref.scope_key)
        request = self._plan_state.asking.get(ref)
        if request is None:
            return await self._open(node, call, hosted)
        if isinstance(request, NextIteration):
            return await self._next(
                node, activity_contracts.IterationCall(call, request.index), parked
            )
        return await _close(
            node, activity_contracts.LoopEndCall(call, request.succeeded, request.opened)
        )

    async def _open(
        self, node: PlanNode, call: activity_contracts.NodeCall, hosted: Hosted
    ) -> activity_contracts.NodeEnd:
        opened = await transact(LoopActivities.open_loop, call, summary_of(node))
        if opened.iterations is None or _fits(opened.iterations):
            return _node_end(call, opened)
        hosted(chunks_id(call))
        chunks = await run_in_chunks(node, call, opened.iterations)
        hosted(None)
        if chunks.end is not None:
            return chunks.end
        if chunks.state is activity_contracts.NodeState.CLOSED:
            return activity_contracts.NodeEnd(
                call.node_id,
                call.scope_key,
                activity_contracts.NodeReply(activity_contracts.NodeState.CLOSED),
            )
        succeeded = chunks.state is activity_contracts.NodeState.SUCCEEDED
        return await _close(node, activity_contracts.LoopEndCall(call, succeeded, chunks.opened))

    async def _next(
        self, node: PlanNode, call: activity_contracts.IterationCall, parked: Parked
    ) -> activity_contracts.NodeEnd:
        decided = await transact(LoopActivities.next_iteration, call, summary_of(node))
        if decided.reply.state is activity_contracts.NodeState.WAITING:
            reply = await self._waits.pause(node, call.loop, decided.reply, parked)
            decided = activity_contracts.LoopReply(reply, decided.iterations)
        return _node_end(call.loop, decided)


def _fits(iterations: activity_contracts.Iterations) -> bool:
    if iterations.most > OWN_ITEMS:
        return False
    return workflow.info().get_current_history_length() < OWN_EVENTS


def _node_end(
    call: activity_contracts.NodeCall, loop: activity_contracts.LoopReply
) -> activity_contracts.NodeEnd:
    iterations = (
        loop.iterations if loop.reply.state is activity_contracts.NodeState.ITERATING else None
    )
    return activity_contracts.NodeEnd(call.node_id, call.scope_key, loop.reply, iterations)


async def _close(
    node: PlanNode, call: activity_contracts.LoopEndCall
) -> activity_contracts.NodeEnd:
    reply = await transact(LoopActivities.close_loop, call, summary_of(node))
    return activity_contracts.NodeEnd(call.loop.node_id, call.loop.scope_key, reply)


CHUNK_ITEMS = 500
"""Iterations of one child; it is no longer than its history allows, too."""
FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(minutes=1)
"""Between two tries to start a child whose predecessor of the same id is about to end."""
LONGEST_ID = 900
"""Bytes of a workflow id; Temporal takes 1,000."""


async def run_in_chunks(
    node: PlanNode, loop: activity_contracts.NodeCall, iterations: activity_contracts.Iterations
) -> activity_contracts.ChunkReply:
    """Run a loop's iterations to their end, or to the failure or stop node that ends them.

    One child at a time, so that the loop's parallelism is the child's.
    """
    reply = activity_contracts.ChunkReply(activity_contracts.NodeState.SUCCEEDED)
    for number, part in enumerate(_parts(iterations)):
        reply = await _run_chunk(node, activity_contracts.ChunkCall(loop, part), number)
        if reply.state is not activity_contracts.NodeState.SUCCEEDED:
            break
    return reply


def _parts(iterations: activity_contracts.Iterations) -> Iterator[activity_contracts.Iterations]:
    if iterations.more:
        yield iterations
        return
    for first in range(0, iterations.count, CHUNK_ITEMS):
        count = min(first + CHUNK_ITEMS, iterations.count)
        yield replace(iterations, first=first, count=count)


async def _run_chunk(
    node: PlanNode, call: activity_contracts.ChunkCall, number: int
) -> activity_contracts.ChunkReply:
    """Run one child. One ended from outside counts as failed; cancelling this cancels it.

    A child of this id that has ended, as after a reset of ours, finds its effects in the rows. One
    that has not ended is signalled to end, because the execution that started it no longer exists.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await _execute(node, call, number)
        except WorkflowAlreadyStartedError:
            await workflow.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        except ChildWorkflowError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from None
            return activity_contracts.ChunkReply(activity_contracts.NodeState.FAILED)


async def _execute(
    node: PlanNode, call: activity_contracts.ChunkCall, number: int
) -> activity_contracts.ChunkReply:
    reply: activity_contracts.ChunkReply = await workflow.execute_child_workflow(
        "LoopChunk",
        call,
        id=f"{chunks_id(call.loop)}/{number}",
        task_queue=Queue.AUTOMATION,
        result_type=activity_contracts.ChunkReply,
        # After a reset of ours the same child is started once more.
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        # Its end is not awaited: the gate of the run decides what it may still write.
        cancellation_type=workflow.ChildWorkflowCancellationType.TRY_CANCEL,
        static_summary=_summary(node, call.iterations),
        # Temporal does not pass them on to children, and operators find work by them.
        search_attributes=workflow.info().typed_search_attributes,
    )
    return reply


def chunks_id(loop: activity_contracts.NodeCall) -> str:
    """The prefix of the workflow ids of a loop's chunks; a number follows."""
    run = WorkflowKind.AUTOMATION_RUN.workflow_id(loop.run_id)
    place = f"{loop.node_id}/{loop.scope_key}"
    if len(place.encode()) > LONGEST_ID - len(run):
        # Derived, so that a repeated start has the same id.
        place = str(derived_id(UUID(loop.run_id), loop.node_id, loop.scope_key))
    return f"{run}/loop/{place}"


def _summary(node: PlanNode, iterations: activity_contracts.Iterations) -> str:
    items = f"items {iterations.first}-{iterations.count - 1}"
    return shortened(f"{'iterations' if iterations.more else items} of {summary_of(node)}")

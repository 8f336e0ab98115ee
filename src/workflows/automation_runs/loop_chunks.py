"""Long loops: their iterations run in child workflows, one chunk after the other (decisions D2)."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ChildWorkflowError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import Iterations, NodeCall, NodeState
    from activities.loop_contracts import ChunkCall, ChunkReply
    from models.automation.automations.rules.planner.plan import PlanNode
    from runtime.derived_ids import derived_id
    from runtime.families import Family, Queue
    from workflows.transactions import shortened, summary_of

CHUNK_ITEMS = 500
"""Iterations of one child; it is no longer than its history allows, too."""
FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(minutes=1)
"""Between two tries to start a child whose predecessor of the same id is about to end."""
LONGEST_ID = 900
"""Bytes of a workflow id; Temporal takes 1,000."""


async def run_in_chunks(node: PlanNode, loop: NodeCall, iterations: Iterations) -> ChunkReply:
    """Run a loop's iterations to their end, or to the failure or stop node that ends them.

    One child at a time, so that the loop's parallelism is the child's.
    """
    reply = ChunkReply(NodeState.SUCCEEDED)
    for number, part in enumerate(_parts(iterations)):
        reply = await _run_chunk(node, ChunkCall(loop, part), number)
        if reply.state is not NodeState.SUCCEEDED:
            break
    return reply


def _parts(iterations: Iterations) -> Iterator[Iterations]:
    if iterations.more:
        yield iterations
        return
    for first in range(0, iterations.count, CHUNK_ITEMS):
        count = min(first + CHUNK_ITEMS, iterations.count)
        yield replace(iterations, first=first, count=count)


async def _run_chunk(node: PlanNode, call: ChunkCall, number: int) -> ChunkReply:
    """Run one child. One ended from outside counts as failed; cancelling this cancels it.

    A child of this id that has ended, as after a reset of ours, finds in the rows what it did. One
    that has not is told to end, because the execution that started it is gone.
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
            return ChunkReply(NodeState.FAILED)


async def _execute(node: PlanNode, call: ChunkCall, number: int) -> ChunkReply:
    reply: ChunkReply = await workflow.execute_child_workflow(
        "LoopChunk",
        call,
        id=f"{chunks_id(call.loop)}/{number}",
        task_queue=Queue.AUTOMATION,
        result_type=ChunkReply,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
        cancellation_type=workflow.ChildWorkflowCancellationType.TRY_CANCEL,
        static_summary=_summary(node, call.iterations),
        search_attributes=workflow.info().typed_search_attributes,
    )
    return reply


def chunks_id(loop: NodeCall) -> str:
    """The prefix of the workflow ids of a loop's chunks; a number follows."""
    run = Family.AUTOMATION_RUN.workflow_id(loop.run_id)
    place = f"{loop.node_id}/{loop.scope_key}"
    if len(place.encode()) > LONGEST_ID - len(run):
        place = str(derived_id(UUID(loop.run_id), loop.node_id, loop.scope_key))
    return f"{run}/loop/{place}"


def _summary(node: PlanNode, iterations: Iterations) -> str:
    items = f"items {iterations.first}-{iterations.count - 1}"
    return shortened(f"{'iterations' if iterations.more else items} of {summary_of(node)}")

"""The steps of a loop around its iterations: open, decide on the next one, run chunks, close."""

from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.automation_runs.loops import LoopActivities
    from activities.contracts import Iterations, NodeCall, NodeEnd, NodeReply, NodeState
    from activities.loop_contracts import IterationCall, LoopEndCall, LoopReply
    from models.automation.automations.rules.planner.plan import PlanNode
    from models.automation.automations.rules.planner.plan_state import PlanState
    from models.automation.automations.rules.planner.protocol import NextIteration, NodeRef
    from workflows.automation_runs.loop_chunks import chunks_id, run_in_chunks
    from workflows.automation_runs.waits import Waits
    from workflows.transactions import summary_of, transact

OWN_ITEMS = 100
"""Iterations that an execution runs itself; more run in executions of their own (decisions D2)."""
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

    async def step(self, node: PlanNode, ref: NodeRef, parked: Parked, hosted: Hosted) -> NodeEnd:
        """Do what a loop needs next: open it, decide on its next iteration, or close it."""
        call = NodeCall(self._run_id, ref.node_id, ref.scope_key)
        asked = self._plan_state.asking.get(ref)
        if asked is None:
            return await self._open(node, call, hosted)
        if isinstance(asked, NextIteration):
            return await self._next(node, IterationCall(call, asked.index), parked)
        return await _close(node, LoopEndCall(call, asked.succeeded, asked.opened))

    async def _open(self, node: PlanNode, call: NodeCall, hosted: Hosted) -> NodeEnd:
        opened = await transact(LoopActivities.open_loop, call, summary_of(node))
        if opened.iterations is None or _fits(opened.iterations):
            return _node_end(call, opened)
        hosted(chunks_id(call))
        chunks = await run_in_chunks(node, call, opened.iterations)
        hosted(None)
        if chunks.end is not None:
            return chunks.end
        if chunks.state is NodeState.CLOSED:
            return NodeEnd(call.node_id, call.scope_key, NodeReply(NodeState.CLOSED))
        succeeded = chunks.state is NodeState.SUCCEEDED
        return await _close(node, LoopEndCall(call, succeeded, chunks.opened))

    async def _next(self, node: PlanNode, call: IterationCall, parked: Parked) -> NodeEnd:
        decided = await transact(LoopActivities.next_iteration, call, summary_of(node))
        if decided.reply.state is NodeState.WAITING:
            reply = await self._waits.pause(node, call.loop, decided.reply, parked)
            decided = LoopReply(reply, decided.iterations)
        return _node_end(call.loop, decided)


def _fits(iterations: Iterations) -> bool:
    if iterations.most > OWN_ITEMS:
        return False
    return workflow.info().get_current_history_length() < OWN_EVENTS


def _node_end(call: NodeCall, loop: LoopReply) -> NodeEnd:
    iterations = loop.iterations if loop.reply.state is NodeState.ITERATING else None
    return NodeEnd(call.node_id, call.scope_key, loop.reply, iterations)


async def _close(node: PlanNode, call: LoopEndCall) -> NodeEnd:
    reply = await transact(LoopActivities.close_loop, call, summary_of(node))
    return NodeEnd(call.loop.node_id, call.loop.scope_key, reply)

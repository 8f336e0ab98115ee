"""The activities of loops whose iterations a workflow runs (decisions C8, D2)."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from temporalio import activity

from activities.automation_runs.loop_nodes import LoopNodes
from activities.automation_runs.node_execution import NodeExecution
from activities.automation_runs.runs import RunCache
from activities.contracts import NodeCall, NodeReply
from activities.loop_contracts import ChunkCall, ChunkOpened, IterationCall, LoopEndCall, LoopReply
from models.automation.automation_runs.errors import RunClosedError
from models.automation.automations.rules.planner.plan_state import PlanState
from runtime.database import Database


class LoopActivities:
    """Open loops, decide on iterations, end loops; one local activity each."""

    def __init__(self, database: Database, runs: RunCache) -> None:
        self._runs = runs
        self._loops = LoopNodes(NodeExecution(database, runs))

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (
            self.open_loop,
            self.next_iteration,
            self.resume_loop,
            self.close_loop,
            self.open_chunk,
        )

    @activity.defn(name="open_loop")
    async def open_loop(self, call: NodeCall) -> LoopReply:
        """Show a loop as running, keep its items, and say how many there are."""
        return await self._loops.open(call)

    @activity.defn(name="decide_next_iteration")
    async def next_iteration(self, call: IterationCall) -> LoopReply:
        """Ask a repeat's condition whether there is another iteration."""
        return await self._loops.next_iteration(call)

    @activity.defn(name="resume_loop")
    async def resume_loop(self, call: NodeCall) -> NodeReply:
        """Go on after the delay between two iterations."""
        return await self._loops.resume(call)

    @activity.defn(name="close_loop")
    async def close_loop(self, call: LoopEndCall) -> NodeReply:
        """Write what became of a loop's items."""
        return await self._loops.close(call)

    @activity.defn(name="open_loop_chunk")
    async def open_chunk(self, call: ChunkCall) -> ChunkOpened:
        """The loop and its body, for an execution that runs a part of the iterations."""
        try:
            run = await self._runs.get(uuid.UUID(call.loop.run_id))
        except RunClosedError:
            return ChunkOpened(None)
        plan = run.plan.loop(call.loop.node_id)
        run.plan_states[call.part] = PlanState(plan, call.loop.scope_key)
        return ChunkOpened(plan.to_json())

"""The workflow that runs a chunk of a long loop's iterations in a history of its own."""

from dataclasses import replace

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.automation_runs.loops import LoopActivities
    from activities.contracts import NodeEnd, NodeReply, NodeState
    from activities.loop_contracts import ChunkCall, ChunkReply
    from models.automation.automations.rules.planner.plan import Plan
    from models.automation.automations.rules.planner.protocol import EndLoop, NodeRef
    from workflows.automation_runs.deadline import RunEnded
    from workflows.automation_runs.graph_execution import GraphExecution, Place
    from workflows.automation_runs.waits import Waits
    from workflows.policies import has_long_history
    from workflows.transactions import transact


@workflow.defn(name="LoopChunk")
class LoopChunk:
    """Iterations `first` up to `count` of a loop; it continues as new when its history is long."""

    def __init__(self) -> None:
        self._waits = Waits()

    @workflow.signal(name="resolve_node")
    def resolve_node(self, node_id: str, scope_key: str) -> None:
        self._waits.resolve(node_id, scope_key)

    @workflow.run
    async def run(self, call: ChunkCall) -> ChunkReply:
        opened = await transact(LoopActivities.open_chunk, call)
        if opened.plan is None:
            return ChunkReply(NodeState.CLOSED)
        loop, plan = call.loop, Plan.from_json(opened.plan)
        place = Place(loop.run_id, loop.scope_key, call.part)
        execution = GraphExecution(place, plan, self._waits)
        try:
            return await self._execute(execution, call)
        except RunEnded:
            return ChunkReply(NodeState.CLOSED)
        finally:
            execution.stop()

    async def _execute(self, execution: GraphExecution, call: ChunkCall) -> ChunkReply:
        plan_state, ref = execution.plan_state, NodeRef(call.loop.node_id, call.loop.scope_key)
        iterating, is_cut = NodeReply(NodeState.ITERATING), False
        execution.accept(NodeEnd(ref.node_id, ref.scope_key, iterating, call.iterations))
        while plan_state.ending is None and not isinstance(plan_state.asking.get(ref), EndLoop):
            loop = plan_state.iterations(ref)
            if (
                has_long_history()
                and not is_cut
                and loop is not None
                and ref not in plan_state.asking
            ):
                is_cut = True
                until = replace(call.iterations, count=loop.opened, more=False)
                execution.accept(NodeEnd(ref.node_id, ref.scope_key, iterating, until))
            else:
                await execution.advance()
        if plan_state.ending is not None:
            return _stopped(plan_state.ending.stopped_by, plan_state.ending.succeeded)
        end = plan_state.asking[ref]
        assert isinstance(end, EndLoop), "the loop above waits for it"
        if not end.succeeded:
            return ChunkReply(NodeState.FAILED, end.opened)
        if is_cut and (call.iterations.more or end.opened < call.iterations.count):
            rest = replace(call.iterations, first=end.opened)
            if rest.more:
                rest = replace(rest, count=end.opened)
            workflow.continue_as_new(replace(call, iterations=rest))
        return ChunkReply(NodeState.SUCCEEDED, end.opened)


def _stopped(ref: NodeRef | None, succeeded: bool) -> ChunkReply:
    assert ref is not None, "only a stop node ends the run from within a loop"
    state = NodeState.STOPPED if succeeded else NodeState.ABORTED
    return ChunkReply(state, end=NodeEnd(ref.node_id, ref.scope_key, NodeReply(state)))

"""The workflows of an automation run, and of a chunk of a long loop with its own history.

A workflow holds ids, kinds and outcomes only; every input, output and status lives in PostgreSQL.
"""

import asyncio
from dataclasses import replace

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities import contracts as activity_contracts
    from activities.automation_runs.loops import LoopActivities
    from activities.automation_runs.transactions import AutomationRunActivities
    from activities.endings import CLOSED
    from models.automation.automations.rules.planner.plan import Plan
    from models.automation.automations.rules.planner.protocol import EndLoop, EndRun, NodeRef
    from workflows.automation_runs.graph_execution import GraphExecution, Place, RunEnded, expire
    from workflows.automation_runs.waits import Waits
    from workflows.calls import end_as_row, transact
    from workflows.policies import has_long_history


@workflow.defn(name="AutomationRun")
class AutomationRun:
    """One run of one frozen version of an automation; the argument is the run's id."""

    def __init__(self) -> None:
        self._execution: GraphExecution | None = None
        self._waits = Waits()
        self._admitted = False
        self._deadline: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, run_id: str) -> str:
        self._run_id = run_id
        try:
            status = await self._execute()
        except RunEnded as ended:
            status = str(ended)
        except asyncio.CancelledError:
            # Someone cancelled the workflow itself; after a cancel through the API, or after its
            # end, the row is closed already and this changes nothing.
            await transact(AutomationRunActivities.close_cancelled, run_id)
            status = CLOSED
        finally:
            if self._execution is not None:
                self._execution.stop()
        # The place where the run ended, for operators; all else is in its row.
        where = "" if self._execution is None else self._execution.ended_at
        return await end_as_row(status, "The run", where)

    @workflow.signal(name="resolve_node")
    def resolve_node(self, node_id: str, scope_key: str) -> None:
        self._waits.resolve(node_id, scope_key)

    @workflow.signal(name="admitted")
    def admitted(self) -> None:
        """The run, which another one waits for, has got a slot."""
        self._admitted = True

    async def _execute(self) -> str:
        reply = await transact(AutomationRunActivities.begin, self._run_id)
        while reply.batch.ended == activity_contracts.WAITS_FOR_SLOT:
            await workflow.wait_condition(lambda: self._admitted)
            self._admitted = False
            reply = await transact(AutomationRunActivities.begin, self._run_id)
        if reply.plan is None:
            raise RunEnded(reply.batch.ended or CLOSED)
        plan = Plan.from_json(reply.plan)
        self._limit, self._began = reply.limit_seconds, workflow.time()
        execution = GraphExecution(Place(self._run_id), plan, self._waits, self._keep_deadline)
        self._execution = execution
        execution.accept(reply.batch)
        while execution.plan_state.ending is None:
            await execution.advance()
        return await self._finish(execution, execution.plan_state.ending)

    def _keep_deadline(self) -> None:
        """From the first node that takes time on: a run of quick nodes has no use for a timer."""
        if self._deadline is None and self._execution is not None:
            # Counted from the begin of the run, so that a later timer does not lengthen its time.
            timer = expire(self._run_id, self._limit, self._began)
            self._deadline = asyncio.create_task(self._execution.report(timer))

    async def _finish(self, execution: GraphExecution, ending: EndRun) -> str:
        call = activity_contracts.FinishCall.of(self._run_id, ending, execution.plan_state.skipped)
        return await transact(AutomationRunActivities.finish, call)


@workflow.defn(name="LoopChunk")
class LoopChunk:
    """Iterations `first` up to `count` of a loop; it continues as new when its history is long."""

    def __init__(self) -> None:
        self._waits = Waits()

    @workflow.signal(name="resolve_node")
    def resolve_node(self, node_id: str, scope_key: str) -> None:
        self._waits.resolve(node_id, scope_key)

    @workflow.run
    async def run(self, call: activity_contracts.ChunkCall) -> activity_contracts.ChunkReply:
        opened = await transact(LoopActivities.open_chunk, call)
        if opened.plan is None:
            return activity_contracts.ChunkReply(activity_contracts.NodeState.CLOSED)
        loop, plan = call.loop, Plan.from_json(opened.plan)
        place = Place(loop.run_id, loop.scope_key, call.part)
        execution = GraphExecution(place, plan, self._waits)
        try:
            return await self._execute(execution, call)
        except RunEnded:
            return activity_contracts.ChunkReply(activity_contracts.NodeState.CLOSED)
        finally:
            execution.stop()

    async def _execute(
        self, execution: GraphExecution, call: activity_contracts.ChunkCall
    ) -> activity_contracts.ChunkReply:
        plan_state, ref = execution.plan_state, NodeRef(call.loop.node_id, call.loop.scope_key)
        iterating, is_cut = (
            activity_contracts.NodeReply(activity_contracts.NodeState.ITERATING),
            False,
        )
        execution.accept(
            activity_contracts.NodeEnd(ref.node_id, ref.scope_key, iterating, call.iterations)
        )
        while plan_state.ending is None and not isinstance(plan_state.asking.get(ref), EndLoop):
            loop = plan_state.iterations(ref)
            if (
                has_long_history()
                and not is_cut
                and loop is not None
                and ref not in plan_state.asking
            ):
                is_cut = True
                # The loop ends after its open iterations, so that no node is in progress when the
                # history is cut.
                until = replace(call.iterations, count=loop.opened, more=False)
                execution.accept(
                    activity_contracts.NodeEnd(ref.node_id, ref.scope_key, iterating, until)
                )
            else:
                await execution.advance()
        if plan_state.ending is not None:
            return _stopped(plan_state.ending.stopped_by, plan_state.ending.succeeded)
        end = plan_state.asking[ref]
        assert isinstance(end, EndLoop), "the loop above waits for it"
        if not end.succeeded:
            return activity_contracts.ChunkReply(activity_contracts.NodeState.FAILED, end.opened)
        if is_cut and (call.iterations.more or end.opened < call.iterations.count):
            rest = replace(call.iterations, first=end.opened)
            if rest.more:
                # The iterations of a repeat are decided one by one: as many as have begun are
                # known.
                rest = replace(rest, count=end.opened)
            workflow.continue_as_new(replace(call, iterations=rest))
        return activity_contracts.ChunkReply(activity_contracts.NodeState.SUCCEEDED, end.opened)


def _stopped(ref: NodeRef | None, succeeded: bool) -> activity_contracts.ChunkReply:
    assert ref is not None, "only a stop node ends the run from within a loop"
    state = (
        activity_contracts.NodeState.STOPPED if succeeded else activity_contracts.NodeState.ABORTED
    )
    return activity_contracts.ChunkReply(
        state,
        end=activity_contracts.NodeEnd(
            ref.node_id, ref.scope_key, activity_contracts.NodeReply(state)
        ),
    )

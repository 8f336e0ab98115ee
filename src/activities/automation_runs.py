"""The transactions of an automation run's workflow, one local activity each (decisions D2).

Each is safe to repeat: the run's status guards it, and a node run exists once per run, node and
scope, written in the transaction of the node's own effect.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.contracts import (
    FinishCall,
    NodeCall,
    NodeReply,
    NodeState,
    ParkCall,
    RunBegun,
    StretchCall,
    StretchReply,
)
from activities.node_execution import CalledNode, GatedNode, NodeExecution
from activities.nodes.delay import seconds_to_wait
from activities.nodes.failures import Failure
from activities.nodes.invocation import Transaction
from activities.nodes.preparation import prepare, substitute
from activities.quick_nodes import QuickNodes, is_quick
from activities.runs import OpenRun, RunCache
from models.automation_runs import execution, node_writes
from models.automation_runs.errors import RunClosedError
from models.automation_runs.rules import RunStatus
from models.automations.rules.course import Course
from models.automations.rules.protocol import NodeRef
from runtime.database import Database, UnitOfWork
from runtime.trigger_points import Point, reach

CLOSED = "closed"


class AutomationRunActivities:
    """Begin, quick nodes, waits and the end of runs."""

    def __init__(
        self, database: Database, runs: RunCache, transactions: Mapping[str, Transaction]
    ) -> None:
        self._database = database
        self._runs = runs
        self._nodes = NodeExecution(database, runs)
        self._quick = QuickNodes(self._nodes, transactions)

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (
            self.begin,
            self.stretch,
            self.park,
            self.wake,
            self.set_waiting,
            self.close_failed_node,
            self.finish,
            self.close_cancelled,
        )

    @activity.defn(name="begin-run")
    async def begin(self, run_id: str) -> RunBegun:
        """`queued → running`, the plan to follow, and the first stretch of quick nodes.

        Repeating it gives the same plan, and the recorded ends of nodes that ended before.
        """
        async with self._database.statement() as work:
            facts = await execution.begin(work, uuid.UUID(run_id))
        if facts is None:
            return RunBegun(None, StretchReply([], CLOSED))
        run = await self._runs.open(facts)
        plan = run.plan()
        run.course = Course(plan)
        ready = [ref for ref in run.course.active if is_quick(run, ref)]
        if len(ready) < len(run.course.active):
            # Other nodes are ready too, and the workflow starts them only after this.
            return RunBegun(plan.to_json(), StretchReply([]))
        return RunBegun(plan.to_json(), await self._advance(run, ready, run.course))

    @activity.defn(name="quick-nodes")
    async def stretch(self, call: StretchCall) -> StretchReply:
        """Quick nodes that are ready, and as far as this process knows, those that follow."""
        try:
            run = await self._runs.get(uuid.UUID(call.run_id))
        except RunClosedError:
            return StretchReply([], CLOSED)
        course = run.follow(call.applied, call.ends)
        return await self._advance(run, [NodeRef(*ref) for ref in call.ready], course)

    async def _advance(
        self, run: OpenRun, ready: Sequence[NodeRef], course: Course | None
    ) -> StretchReply:
        try:
            ends = await self._quick.stretch(run, ready, course)
        except RunClosedError:
            return StretchReply([], CLOSED)
        if course is None or course.ending is None:
            return StretchReply(ends)
        decisive = course.ending.stopped_by or course.ending.failed
        ended = await self.finish(
            FinishCall(
                run_id=str(run.facts.run_id),
                succeeded=course.ending.succeeded,
                decisive_node=(
                    None
                    if decisive is None
                    else NodeCall(str(run.facts.run_id), decisive.node_id, decisive.scope_key)
                ),
                skipped=[(ref.node_id, ref.scope_key) for ref in course.skipped],
            )
        )
        return StretchReply(ends, ended)

    @activity.defn(name="park-node")
    async def park(self, call: ParkCall) -> NodeReply:
        """Show a node as waiting and say for how long."""

        async def park(called: CalledNode) -> NodeReply:
            substituted = substitute(called.run, called.node)
            if substituted is not None:
                return await self._nodes.complete_at_once(called, substituted, None)
            prepared = await prepare(self._database, called.run, called.node)
            seconds = seconds_to_wait(prepared.parameters, call.now)

            async def body(node: GatedNode) -> NodeReply:
                await node_writes.park_node(
                    node.work,
                    called.key,
                    node.before,
                    inputs=prepared.parameters,
                    seconds=seconds,
                )
                return NodeReply(NodeState.WAITING, seconds=seconds)

            return await self._nodes.behind_gate(called, body)

        return await self._nodes.guarded(call.node, park)

    @activity.defn(name="wake-node")
    async def wake(self, call: NodeCall) -> NodeReply:
        """The wait is over: complete the node and show the run as running."""

        async def body(node: GatedNode) -> NodeReply:
            await execution.set_waiting(node.work, node.called.key.run_id, waiting=False)
            await node_writes.wake_node(node.work, node.called.key)
            return NodeReply(NodeState.SUCCEEDED)

        async def wake(called: CalledNode) -> NodeReply:
            return await self._nodes.behind_gate(called, body, exclusive=True)

        return await self._nodes.guarded(call, wake)

    @activity.defn(name="set-waiting")
    async def set_waiting(self, run_id: str) -> None:
        """Nothing of the run is running and something waits."""
        async with self._database.statement() as work:
            await execution.set_waiting(work, uuid.UUID(run_id), waiting=True)

    @activity.defn(name="close-failed-node")
    async def close_failed_node(self, call: NodeCall) -> NodeReply:
        """Make sure a node whose activity failed is shown as failed.

        The activity writes its own failure; when it was lost with its worker, this does.
        """
        return await self._nodes.fail(
            call,
            Failure("timeout", "The node did not end within its time, or its worker was lost."),
        )

    @activity.defn(name="finish-run")
    async def finish(self, call: FinishCall) -> str:
        """Write the end of the run; `closed` when it had ended before."""
        try:
            run = await self._runs.get(uuid.UUID(call.run_id))
        except RunClosedError:
            return CLOSED
        reach(Point.BEFORE_TERMINAL_WRITE, call.run_id)
        if call.decisive_node is None and not call.skipped:
            written = await self._finish_at_once(run)
        else:
            written = await self._finish(run, call)
        reach(Point.AFTER_TERMINAL_WRITE, call.run_id)
        self._runs.forget(run.facts.run_id)
        return written

    async def _finish_at_once(self, run: OpenRun) -> str:
        async with self._database.statement() as work:
            written = await execution.succeed(work, run.facts.run_id, run.plan().leaves())
        return RunStatus.SUCCEEDED if written else CLOSED

    async def _finish(self, run: OpenRun, call: FinishCall) -> str:
        async with self._database.transaction() as work:
            if call.decisive_node is None:
                status = RunStatus.SUCCEEDED
                written = await execution.succeed(work, run.facts.run_id, run.plan().leaves())
            else:
                status, written = await self._finish_by(work, run, call, call.decisive_node)
            if not written:
                return CLOSED
            skipped = [(name, scope, run.graph.nodes[name].kind) for name, scope in call.skipped]
            await execution.skip_nodes(work, run.facts.workspace_id, run.facts.run_id, skipped)
        return status

    async def _finish_by(
        self, work: UnitOfWork, run: OpenRun, call: FinishCall, node: NodeCall
    ) -> tuple[RunStatus, bool]:
        """The end that one node decided: an unhandled failure, or a stop node."""
        run_id = run.facts.run_id
        end = await execution.node_end(work, run_id, node.node_id, node.scope_key)
        status = RunStatus.SUCCEEDED if call.succeeded else RunStatus.FAILED
        error = None if call.succeeded else f"{run.graph.label(node.node_id)}: {end.reason}"
        written = await execution.finish(
            work, run_id, status=status, output=end.output, error=error
        )
        if written:
            await execution.close_nodes(work, run_id)
        return status, written

    @activity.defn(name="close-cancelled-run")
    async def close_cancelled(self, run_id: str) -> None:
        """Close the run of a workflow that an operator cancelled; no change to a closed run."""
        async with self._database.transaction() as work:
            await execution.abandon(
                work, uuid.UUID(run_id), RunStatus.CANCELLED, "Cancelled in Temporal."
            )

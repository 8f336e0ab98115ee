"""The transactions of an automation run's workflow, one local activity each (decisions D2).

Each is safe to repeat: the run's status guards it, and a node run exists once per run, node and
scope, written in the transaction of the node's own effect.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.contracts import FinishCall, NodeCall, NodeReply, NodeState, ParkCall, RunBegun
from activities.node_execution import CalledNode, GatedNode, NodeExecution
from activities.nodes.delay import seconds_to_wait
from activities.nodes.failures import Failure
from activities.nodes.invocation import Invocation, NodeResult, Transaction
from activities.nodes.logic import COMPUTATIONS
from activities.nodes.preparation import prepare, substitute
from activities.runs import OpenRun, RunCache
from models.automation_runs import execution, node_writes
from models.automation_runs.errors import RunClosedError
from models.automation_runs.rules import RunStatus
from runtime.database import Database


class AutomationRunActivities:
    """Begin, quick nodes, waits and the end of runs."""

    def __init__(
        self, database: Database, runs: RunCache, transactions: Mapping[str, Transaction]
    ) -> None:
        self._database = database
        self._runs = runs
        self._transactions = transactions
        self._nodes = NodeExecution(database, runs)

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (
            self.begin,
            self.quick_node,
            self.park,
            self.wake,
            self.set_waiting,
            self.close_failed_node,
            self.finish,
            self.close_cancelled,
        )

    @activity.defn(name="begin-run")
    async def begin(self, run_id: str) -> RunBegun:
        """`queued → running`, and the plan to follow. Repeating it gives the same plan."""
        async with self._database.statement() as work:
            facts = await execution.begin(work, uuid.UUID(run_id))
        if facts is None:
            return RunBegun(None)
        plan = (await self._runs.open(facts)).graph.plan
        if facts.start_node_id is not None:
            only = facts.options.get("only")
            plan = plan.restricted(facts.start_node_id, None if only is None else frozenset(only))
        if (last := facts.options.get("stopAtNodeId")) is not None:
            plan = plan.until(last)
        return RunBegun(plan.to_json())

    @activity.defn(name="quick-node")
    async def quick_node(self, call: NodeCall) -> NodeReply:
        """One node whose whole work is one transaction."""
        return await self._nodes.guarded(call, self._quick_node)

    async def _quick_node(self, called: CalledNode) -> NodeReply:
        substituted = substitute(called.run, called.node)
        if substituted is not None:
            return await self._nodes.complete_at_once(called, substituted, None)
        prepared = await prepare(self._database, called.run, called.node)
        compute = COMPUTATIONS.get(called.node.kind)
        if compute is not None:
            result = compute(prepared.parameters, prepared.context)
            return await self._nodes.complete_at_once(called, result, prepared.parameters)

        async def body(node: GatedNode) -> tuple[NodeReply, NodeResult]:
            perform = self._transactions[called.node.kind]
            actor = called.run.facts.actor
            result = await perform(Invocation(node.work, actor, prepared.parameters))
            return await node.complete(result, prepared.parameters), result

        done = await self._nodes.behind_gate(called, body)
        if isinstance(done, NodeReply):
            return done
        reply, result = done
        called.run.keep(called.key.node_id, called.key.scope_key, result.output)
        return reply

    @activity.defn(name="park-node")
    async def park(self, call: ParkCall) -> NodeReply:
        """Show a node as waiting and say for how long."""

        async def park(called: CalledNode) -> NodeReply:
            seconds, inputs = 0.0, None
            if substitute(called.run, called.node) is None:
                prepared = await prepare(self._database, called.run, called.node)
                inputs = prepared.parameters
                seconds = seconds_to_wait(inputs, call.now)

            async def body(node: GatedNode) -> NodeReply:
                await node_writes.park_node(
                    node.work, called.key, node.before, inputs=inputs, seconds=seconds
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
            call, Failure("timeout", "The node did not answer within its time.")
        )

    @activity.defn(name="finish-run")
    async def finish(self, call: FinishCall) -> str:
        """Write the end of the run; `closed` when it had ended before."""
        try:
            run = await self._runs.get(uuid.UUID(call.run_id))
        except RunClosedError:
            return "closed"
        if call.decisive_node is None and not call.skipped:
            written = await self._finish_at_once(run)
        else:
            written = await self._finish(run, call)
        self._runs.forget(run.facts.run_id)
        return written

    async def _finish_at_once(self, run: OpenRun) -> str:
        run_id = run.facts.run_id
        leaves = execution.leaf_outputs(run_id, run.graph.plan.leaves())
        async with self._database.statement() as work:
            written = await execution.finish(
                work, run_id, status=RunStatus.SUCCEEDED, output=leaves
            )
        return RunStatus.SUCCEEDED if written else "closed"

    async def _finish(self, run: OpenRun, call: FinishCall) -> str:
        run_id, graph = run.facts.run_id, run.graph
        status = RunStatus.SUCCEEDED if call.succeeded else RunStatus.FAILED
        output: Any = execution.leaf_outputs(run_id, graph.plan.leaves())
        error = None
        async with self._database.transaction() as work:
            if (node := call.decisive_node) is not None:
                end = await execution.node_end(work, run_id, node.node_id, node.scope_key)
                output = end.output
                error = None if call.succeeded else f"{graph.label(node.node_id)}: {end.reason}"
            if not await execution.finish(work, run_id, status=status, output=output, error=error):
                return "closed"
            await execution.close_nodes(work, run_id)
            skipped = [(name, scope, graph.nodes[name].kind) for name, scope in call.skipped]
            await execution.skip_nodes(work, run.facts.workspace_id, run_id, skipped)
        return status

    @activity.defn(name="close-cancelled-run")
    async def close_cancelled(self, run_id: str) -> None:
        """Close the run of a workflow that an operator cancelled; no change to a closed run."""
        async with self._database.transaction() as work:
            await execution.abandon(
                work, uuid.UUID(run_id), RunStatus.CANCELLED, "Cancelled in Temporal."
            )

"""The transactions of an automation run's workflow, one local activity each (decisions D2).

Each is safe to repeat: the run's status guards it, and a node run exists once per run, node and
scope, written in the transaction of the node's own effect.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from temporalio import activity

from activities.contracts import FinishCall, NodeCall, NodeReply, NodeState, ParkCall, RunBegun
from activities.graphs import GraphCache
from activities.node_execution import NodeExecution, OpenNode, succeeded
from activities.nodes.delay import seconds_to_wait
from activities.nodes.failures import Failure
from activities.nodes.invocation import Handler, Invocation
from activities.nodes.preparation import prepare, substitute
from models.automation_runs import execution
from models.automation_runs.rules import RunStatus
from runtime.database import Database


class AutomationRunActivities:
    """Begin, quick nodes, waits and the end of runs."""

    def __init__(
        self, database: Database, graphs: GraphCache, handlers: Mapping[str, Handler]
    ) -> None:
        self._database = database
        self._graphs = graphs
        self._handlers = handlers
        self._nodes = NodeExecution(database, graphs)

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (
            self.begin, self.quick_node, self.park, self.wake, self.set_waiting,
            self.close_failed_node, self.finish, self.close_cancelled,
        )  # fmt: skip

    @activity.defn(name="begin-run")
    async def begin(self, run_id: str) -> RunBegun:
        """`queued → running`, and the plan to follow. Repeating it gives the same plan."""
        async with self._database.transaction() as work:
            begun = await execution.begin(work, uuid.UUID(run_id))
            if begun is None:
                return RunBegun(None)
            graph = await self._graphs.get(work, begun.automation_id, begun.graph_checksum)
        plan = graph.plan
        if begun.start_node_id is not None:
            only = begun.options.get("only")
            plan = plan.restricted(begun.start_node_id, None if only is None else frozenset(only))
        if (last := begun.options.get("stopAtNodeId")) is not None:
            plan = plan.until(last)
        return RunBegun(plan.to_json())

    @activity.defn(name="quick-node")
    async def quick_node(self, call: NodeCall) -> NodeReply:
        """One node whose whole work is one transaction."""
        return await self._nodes.behind_gate(call, self._quick_node)

    async def _quick_node(self, node: OpenNode) -> NodeReply:
        result = substitute(node.context, node.node)
        inputs = None
        if result is None:
            prepared = await prepare(node.work, node.context, node.node)
            inputs = prepared.parameters
            result = await self._handlers[node.node.kind](
                Invocation(node.work, node.context.actor, inputs, prepared.context)
            )
        await execution.complete_node(
            node.work,
            node.context,
            node.key,
            inputs=inputs,
            output=result.output,
            outcome=result.outcome,
            case_key=result.case_key,
        )
        return succeeded(node.node.kind, result)

    @activity.defn(name="park-node")
    async def park(self, call: ParkCall) -> NodeReply:
        """Show a node as waiting and say for how long."""

        async def body(node: OpenNode) -> NodeReply:
            seconds, inputs = 0.0, None
            if substitute(node.context, node.node) is None:
                prepared = await prepare(node.work, node.context, node.node)
                inputs = prepared.parameters
                seconds = seconds_to_wait(inputs, call.now)
            await execution.park_node(
                node.work, node.context, node.key, inputs=inputs, seconds=seconds
            )
            return NodeReply(NodeState.WAITING, seconds=seconds)

        return await self._nodes.behind_gate(call.node, body)

    @activity.defn(name="wake-node")
    async def wake(self, call: NodeCall) -> NodeReply:
        """The wait is over: complete the node and show the run as running."""

        async def body(node: OpenNode) -> NodeReply:
            await execution.set_waiting(node.work, node.context.run_id, waiting=False)
            await execution.wake_node(node.work, node.key)
            return NodeReply(NodeState.SUCCEEDED)

        return await self._nodes.behind_gate(call, body, exclusive=True)

    @activity.defn(name="set-waiting")
    async def set_waiting(self, run_id: str) -> None:
        """Nothing of the run is running and something waits."""
        async with self._database.transaction() as work:
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
        run_id = uuid.UUID(call.run_id)
        async with self._database.transaction() as work:
            run = await execution.lock_open(work, run_id)
            if run is None:
                return "closed"
            graph = await self._graphs.get(work, run.automation_id, run.graph_checksum)
            skipped = [(node, scope, graph.nodes[node].kind) for node, scope in call.skipped]
            await execution.skip_nodes(work, run.workspace_id, run_id, skipped)
            decisive = call.decisive_node
            if decisive is None:
                leaves = execution.leaf_outputs(run_id, graph.plan.leaves())
                await execution.finish(work, run_id, status=RunStatus.SUCCEEDED, output=leaves)
                return RunStatus.SUCCEEDED
            end = await execution.node_end(work, run_id, decisive.node_id, decisive.scope_key)
            status = RunStatus.SUCCEEDED if call.succeeded else RunStatus.FAILED
            error = None if call.succeeded else f"{graph.label(decisive.node_id)}: {end.reason}"
            await execution.finish(work, run_id, status=status, output=end.output, error=error)
            return status

    @activity.defn(name="close-cancelled-run")
    async def close_cancelled(self, run_id: str) -> None:
        """Close the run of a workflow that an operator cancelled; no change to a closed run."""
        async with self._database.transaction() as work:
            await execution.finish(
                work,
                uuid.UUID(run_id),
                status=RunStatus.CANCELLED,
                output=None,
                error="Cancelled in Temporal.",
            )

"""Loop nodes: opened, decided on, paused and ended, one transaction each (ADR 0019).

The iterations of a loop run elsewhere: in a batch (`quick_nodes`), in the workflow of the run, or
in workflows of their own. What an iteration was given and what came of it is in PostgreSQL alone.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from temporalio import activity

from activities import contracts
from activities.automation_runs import node_execution
from activities.automation_runs.nodes import resolution
from activities.automation_runs.nodes.invocation import NodeResult
from activities.automation_runs.runs import OpenLoop, RunCache, read_config
from models.automation.automation_runs import loops, node_writes
from models.automation.automation_runs.rules import NodeError, RunClosedError
from models.automation.automations.rules.graph.configs import ForEachConfig, RepeatConfig
from models.automation.automations.rules.graph.kinds import EdgeOutcome
from models.automation.automations.rules.planner.planner import PlanState
from models.automation.automations.rules.planner.protocol import NodeRef
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import saved_expression
from runtime.database import Database
from runtime.processes.bounded_processes import evaluate_bounded

ITERATING = contracts.NodeReply(contracts.NodeState.ITERATING)


@dataclass(frozen=True, slots=True)
class Opened:
    """A loop that iterates, and how far it had come when that was last written."""

    loop: OpenLoop
    progress: JsonObject | None = None


class LoopNodes:
    """The transactions of loop nodes. Each may be repeated."""

    def __init__(self, nodes: node_execution.NodeExecution) -> None:
        self._nodes = nodes

    async def open(self, call: contracts.NodeCall) -> contracts.LoopReply:
        """Show a loop as running and say what iterations it has; its failure if it has none."""
        opened = await self.opened(call)
        if isinstance(opened, contracts.NodeReply):
            return contracts.LoopReply(opened)
        loop = opened.loop
        ready = contracts.Iterations(
            loop.count or 0,
            loop.parallelism,
            loop.stops_on_error,
            more=loop.count is None,
            most=loop.most,
        )
        return contracts.LoopReply(ITERATING, ready)

    async def opened(self, call: contracts.NodeCall) -> Opened | contracts.NodeReply:
        """Open a loop whose iterations the caller runs in this process."""
        return await self._nodes.guarded(call, self._open)

    async def _open(self, invocation: node_execution.CalledNode) -> Opened | contracts.NodeReply:
        substituted = resolution.substitute(invocation.run, invocation.node)
        if substituted is not None:
            done = replace(substituted, outcome=EdgeOutcome.DONE)
            return await self._nodes.complete_with_gate(invocation, done, None)
        ref = _ref(invocation)
        known = invocation.run.known_loop(ref)
        if known is not None:
            async with self._nodes.database.statement() as work:
                return Opened(known, await loops.read_progress(work, invocation.key))
        parameters = await resolution.loop_parameters(self._nodes.database, invocation)
        loop = OpenLoop(read_config(invocation.node.kind, parameters), invocation.run.chosen(ref))
        _check_size(loop)

        earlier = await self._retried(invocation, parameters)

        async def body(node: node_execution.GatedNode) -> loops.StoredLoop | None:
            if node.before.status is None:
                await node_writes.start_node(
                    node.work, invocation.key, node.before, inputs=parameters, attempt=1
                )
                if earlier is not None:
                    await loops.reuse_items(node.work, invocation.key, earlier, *_body(invocation))
                return None
            return await loops.read_loop(node.work, invocation.key)

        row = await self._nodes.behind_gate(invocation, body)
        if isinstance(row, contracts.NodeReply):
            return row
        if row is not None:
            loop = OpenLoop(read_config(invocation.node.kind, row.input), loop.indexes)
        invocation.run.keep_loop(ref, loop)
        return Opened(loop, None if row is None else row.output)

    async def _retried(
        self, invocation: node_execution.CalledNode, parameters: JsonObject
    ) -> Id | None:
        """The retried run whose items this loop continues with, if they are the same."""
        header = invocation.run.header
        if "reused" not in header.options or invocation.run.chosen(_ref(invocation)):
            return None
        async with self._nodes.database.statement() as work:
            earlier = await loops.earlier_loop(work, header, invocation.key)
        if earlier is None or earlier.input != parameters:
            return None
        run_id: Id = earlier.run_id
        return run_id

    async def next_iteration(self, call: contracts.IterationCall) -> contracts.LoopReply:
        """Decide on the next iteration of a repeat; WAITING when its delay comes first."""
        reply = await self._nodes.guarded(
            call.loop, lambda invocation: self._next(invocation, call.index)
        )
        return reply if isinstance(reply, contracts.LoopReply) else contracts.LoopReply(reply)

    async def _next(
        self, invocation: node_execution.CalledNode, index: int
    ) -> contracts.LoopReply | contracts.NodeReply:
        if not await self.goes_on(invocation, index):
            return contracts.LoopReply(ITERATING, contracts.Iterations(index))
        ready = contracts.Iterations(index + 1, more=True)
        loop = await resolution.open_loop(self._nodes.database, invocation.run, _ref(invocation))
        assert isinstance(loop.config, RepeatConfig), "only a repeat is decided on"
        seconds = loop.config.delay_seconds
        if not seconds or not index:
            return contracts.LoopReply(ITERATING, ready)

        async def body(node: node_execution.GatedNode) -> contracts.LoopReply:
            # A repetition after the delay must not pause once more.
            if await loops.has_begun(node.work, invocation.key, index):
                return contracts.LoopReply(ITERATING, ready)
            pause = node.before.seconds_left(node.work.now) if node.before.waits else seconds
            if not node.before.waits:
                await loops.pause_loop(node.work, invocation.key, seconds)
            return contracts.LoopReply(
                contracts.NodeReply(contracts.NodeState.WAITING, seconds=pause), ready
            )

        return await self._nodes.behind_gate(invocation, body)

    async def goes_on(self, invocation: node_execution.CalledNode, index: int) -> bool:
        """True when a repeat has an iteration `index`. Raises NodeError, ExpressionError."""
        loop = await resolution.open_loop(self._nodes.database, invocation.run, _ref(invocation))
        assert isinstance(loop.config, RepeatConfig), "only a repeat is decided on"
        return index < loop.config.max_iterations and await self._holds(
            invocation, loop.config, index
        )

    async def _holds(
        self, invocation: node_execution.CalledNode, config: RepeatConfig, index: int
    ) -> bool:
        """True when the condition holds, as iteration `index` would see it; none always does."""
        if config.while_ is None:
            return True
        scope_key = _ref(invocation).iteration(index)
        context = await resolution.binding_context(
            self._nodes.database, invocation.run, invocation.node.reads, scope_key
        )
        condition = saved_expression(config.while_)
        result = await evaluate_bounded(lambda: condition.evaluate(context.variables()))
        if not isinstance(result, bool):
            raise NodeError("binding_error", "while: The expression must return true or false.")
        return result

    async def resume(self, call: contracts.NodeCall) -> contracts.NodeReply:
        """The delay of a repeat is over: loop and run are shown as running."""

        async def body(node: node_execution.GatedNode) -> contracts.NodeReply:
            if node.before.status is None:
                # As where a wait has no row.
                return node_execution.CLOSED
            await node_execution.show_running(node)
            await loops.resume_loop(node.work, node.invocation.key)
            return ITERATING

        async def resume(invocation: node_execution.CalledNode) -> contracts.NodeReply:
            # Exclusive, because it changes the run's row, which the gate otherwise locks shared.
            return await self._nodes.behind_gate(invocation, body, exclusive=True)

        return await self._nodes.guarded(call, resume)

    async def close(self, call: contracts.LoopEndCall) -> contracts.NodeReply:
        """Write a loop's end, with what became of its items."""
        return await self._nodes.guarded(
            call.loop, lambda invocation: self._close(invocation, call)
        )

    async def _close(
        self, invocation: node_execution.CalledNode, call: contracts.LoopEndCall
    ) -> contracts.NodeReply:
        ref = _ref(invocation)
        loop = await resolution.open_loop(self._nodes.database, invocation.run, ref)
        if not call.succeeded:
            reply = await self._nodes.behind_gate(invocation, _fail)
        else:
            counts = await self._counts(invocation, loop, call.opened)

            async def body(
                node: node_execution.GatedNode,
            ) -> tuple[contracts.NodeReply, JsonObject]:
                output = {**counts, **await _results(node, loop, counts["count"])}
                result = NodeResult(output, EdgeOutcome.DONE)
                return await node.complete(result, None), output

            done = await self._nodes.behind_gate(invocation, body)
            reply, output = (done, None) if isinstance(done, contracts.NodeReply) else done
            if output is not None:
                invocation.run.keep(ref.node_id, ref.scope_key, output)
        # Items may take megabytes, which the cache of open runs need not keep.
        invocation.run.forget_loop(ref)
        invocation.run.plan_states.pop(contracts.part_of(call.loop), None)
        return reply

    async def _counts(
        self, invocation: node_execution.CalledNode, loop: OpenLoop, opened: int
    ) -> JsonObject:
        if loop.items is not None:
            return {"count": len(loop.indexes) or len(loop.items)}
        assert isinstance(loop.config, RepeatConfig), "a loop has items or a condition"
        full = opened >= loop.config.max_iterations and not loop.indexes
        limits = full and loop.config.while_ is not None
        reached = limits and await self._would_go_on(invocation, loop.config, opened)
        return {"count": len(loop.indexes) or opened, "limitReached": reached}

    async def _would_go_on(
        self, invocation: node_execution.CalledNode, config: RepeatConfig, index: int
    ) -> bool:
        """True when the limit alone ended a repeat; a condition that cannot say did not end it."""
        try:
            return await self._holds(invocation, config, index)
        # The loop has ended by its limit; an error of the next iteration must not fail it.
        except (NodeError, BindingError):
            return True


def _ref(invocation: node_execution.CalledNode) -> NodeRef:
    return NodeRef(invocation.key.node_id, invocation.key.scope_key)


def _check_size(loop: OpenLoop) -> None:
    """Raises NodeError for more items than the loop may have."""
    config = loop.config
    if isinstance(config, ForEachConfig) and len(config.items) > config.max_items:
        raise NodeError(
            "too_many_items",
            f"The loop has {len(config.items)} items. The limit is {config.max_items}.",
        )


def _body(invocation: node_execution.CalledNode) -> tuple[list[str], list[str]]:
    """The nodes of a loop's own body, and the ones among them whose failure an edge handles."""
    topology = invocation.run.topology
    body = topology.bodies.get(invocation.key.node_id, ())
    return list(body), [node_id for node_id in body if topology.handles_failure(node_id)]


def _failing(invocation: node_execution.CalledNode) -> list[str]:
    """The nodes of a loop's own body whose failure is their item's."""
    body, handled = _body(invocation)
    return [node_id for node_id in body if node_id not in handled]


def _last(invocation: node_execution.CalledNode) -> str:
    """The node that a loop's own body ends with."""
    topology = invocation.run.topology
    body = topology.bodies[invocation.key.node_id]
    return next(node_id for node_id in body if not topology.ways_out[node_id])


async def _fail(node: node_execution.GatedNode) -> contracts.NodeReply:
    """The loop fails with its first failed item; what its other items left open is cancelled."""
    key, graph = node.invocation.key, node.invocation.run.graph
    failed = await loops.failed_items(node.work, key, _failing(node.invocation))
    code, message = "interrupted", "Its iterations were ended externally."
    if failed:
        label = graph.label(failed[0].node_id)
        code, message = "item_failed", f"Item {failed[0].index}: {label}: {failed[0].error}"
    await node_writes.fail_node(node.work, key, node.before, code=code, message=message)
    # In the same transaction, so that no item is shown as open in a failed loop.
    await loops.cancel_iterations(node.work, key)
    return contracts.NodeReply(contracts.NodeState.FAILED, code=code)


async def _results(node: node_execution.GatedNode, loop: OpenLoop, count: int) -> JsonObject:
    """Counts, the failed items, and the collected values.

    Raises NodeError when they are too large.
    """
    key, config = node.invocation.key, loop.config
    failed = await loops.failed_items(node.work, key, _failing(node.invocation))
    total = failed[0].total if failed else 0
    output: JsonObject = {"succeeded": count - total, "failed": total}
    if failed:
        output["errors"] = [
            {"index": row.index, "nodeId": row.node_id, "error": row.error} for row in failed
        ]
    if config.collect:
        source = _last(node.invocation) if config.collect is True else config.collect
        # Asked before they are read: thousands of outputs could exceed the memory of the worker.
        if await loops.collected_bytes(node.work, key, source) > node_execution.OUTPUT_LIMIT:
            raise NodeError("output_too_large", "The collected outputs are larger than 1 MiB.")
        found = await loops.collected(node.work, key, source)
        indexes = loop.indexes or range(count)
        output["results"] = [found.get(index) for index in indexes]
    return output


class LoopActivities:
    """Open loops, decide on iterations, end loops; one local activity each."""

    def __init__(self, database: Database, runs: RunCache) -> None:
        self._runs = runs
        self._loops = LoopNodes(node_execution.NodeExecution(database, runs))

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
    async def open_loop(self, call: contracts.NodeCall) -> contracts.LoopReply:
        """Show a loop as running, keep its items, and return their number."""
        return await self._loops.open(call)

    @activity.defn(name="decide_next_iteration")
    async def next_iteration(self, call: contracts.IterationCall) -> contracts.LoopReply:
        """Ask a repeat's condition whether there is another iteration."""
        return await self._loops.next_iteration(call)

    @activity.defn(name="resume_loop")
    async def resume_loop(self, call: contracts.NodeCall) -> contracts.NodeReply:
        """Continue after the delay between two iterations."""
        return await self._loops.resume(call)

    @activity.defn(name="close_loop")
    async def close_loop(self, call: contracts.LoopEndCall) -> contracts.NodeReply:
        """Write what became of a loop's items."""
        return await self._loops.close(call)

    @activity.defn(name="open_loop_chunk")
    async def open_chunk(self, call: contracts.ChunkCall) -> contracts.ChunkOpened:
        """The loop and its body, for an execution that runs a part of the iterations."""
        try:
            run = await self._runs.get(uuid.UUID(call.loop.run_id))
        except RunClosedError:
            return contracts.ChunkOpened(None)
        plan = run.plan.loop(call.loop.node_id)
        run.plan_states[call.part] = PlanState(plan, call.loop.scope_key)
        return contracts.ChunkOpened(plan.to_json())

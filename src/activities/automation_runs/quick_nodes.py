"""Quick nodes: each effect is a transaction, nodes that only compute share one (ADR 0080).

Nodes that follow from each other are one local activity (ADR 0001).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

from activities.automation_runs.node_batch import NodeBatch
from activities.automation_runs.node_execution import (
    CalledNode,
    GatedNode,
    NodeExecution,
    completion,
    success,
)
from activities.automation_runs.nodes.invocation import Invocation, NodeResult, Transaction
from activities.automation_runs.nodes.logic import COMPUTATIONS
from activities.automation_runs.nodes.resolution import resolve_parameters, substitute
from activities.automation_runs.quick_loops import QuickLoops, Turn
from activities.automation_runs.runs import OpenRun
from activities.contracts import (
    LoopProgress,
    NodeCall,
    NodeEnd,
    NodeReply,
    NodeState,
    QuickNodesReply,
)
from models.automation.automation_runs.errors import RunClosedError
from models.automation.automation_runs.node_writes import add_attributes
from models.automation.automations.rules.attributes import as_texts
from models.automation.automations.rules.graph.kinds import CostClass, is_loop
from models.automation.automations.rules.planner.plan_state import PlanState
from models.automation.automations.rules.planner.protocol import NodeRef
from models.core.base import JsonObject
from runtime.bounded_processes import evaluate_bounded
from runtime.fault_injection import FaultPoint, inject_fault

BATCH_SECONDS = 2.0
"""A batch that takes longer goes on in another local activity."""
HURRY_SECONDS = 0.05
"""The time a batch goes on when another kind of node is ready, which can start only after it."""


class QuickNodes:
    """Executes quick nodes, alone or as long as one follows from another."""

    def __init__(self, nodes: NodeExecution, transactions: Mapping[str, Transaction]) -> None:
        self._nodes = nodes
        self._transactions = transactions
        self._loops = QuickLoops(nodes, self.execute)

    async def run(
        self,
        run: OpenRun,
        ready: Sequence[NodeRef],
        plan_state: PlanState | None,
        batch: NodeBatch | None,
    ) -> QuickNodesReply:
        """Execute the ready nodes; with a plan state, also the quick nodes that become ready.

        It hurries where another kind of node is ready, so that one need not wait. The caller writes
        what is left in the batch. Raises RunClosedError, BatchRefusedError.
        """
        ends: list[NodeEnd] = []
        waiting = deque(ready)
        turn = Turn(BATCH_SECONDS)
        while waiting:
            ref = waiting.popleft()
            end = await self._end(run, ref, turn, batch)
            if isinstance(end, LoopProgress):
                return QuickNodesReply(ends, loops=[*turn.ended_loops, end])
            ends.append(end)
            if plan_state is None:
                continue
            known = set(plan_state.active)
            plan_state.apply(end.event)
            active = dict.fromkeys(plan_state.active)
            fresh = [other for other in active if other not in known]
            waiting = deque(other for other in (*waiting, *fresh) if other in active)
            if not all(is_quick(run, other) for other in fresh):
                waiting = deque(other for other in waiting if is_quick(run, other))
                turn.hurry(HURRY_SECONDS)
            if turn.over:
                break
        return QuickNodesReply(ends, loops=turn.ended_loops)

    async def _end(
        self, run: OpenRun, ref: NodeRef, turn: Turn, batch: NodeBatch | None
    ) -> NodeEnd | LoopProgress:
        if is_loop(run.graph.nodes[ref.node_id].kind):
            return await self._loops.advance(run, ref, turn, batch)
        reply = await self.execute(run, ref, batch)
        if reply.state is NodeState.CLOSED:
            raise RunClosedError
        return NodeEnd(ref.node_id, ref.scope_key, reply)

    async def execute(self, run: OpenRun, ref: NodeRef, batch: NodeBatch | None) -> NodeReply:
        """One node whose whole work is one transaction, or a part of the batch's.

        Raises RunClosedError, BatchRefusedError.
        """
        node = run.graph.nodes[ref.node_id]
        computes = node.kind in COMPUTATIONS and not node.names_attributes
        if batch is not None and (batch.is_due or not computes):
            await batch.write()
        call = NodeCall(str(run.header.run_id), ref.node_id, ref.scope_key)
        return await self._nodes.guarded(call, partial(self._execute, batch=batch), batch)

    async def _execute(self, invocation: CalledNode, batch: NodeBatch | None) -> NodeReply:
        substituted = substitute(invocation.run, invocation.node)
        if substituted is not None:
            return await self._complete(invocation, substituted, None, batch)
        resolved = await resolve_parameters(self._nodes.database, invocation)
        compute = COMPUTATIONS.get(invocation.node.kind)
        if compute is not None:
            result = await evaluate_bounded(lambda: compute(resolved.parameters, resolved.context))
            if invocation.node.names_attributes:
                return await self._label(invocation, result, resolved.parameters)
            return await self._complete(invocation, result, resolved.parameters, batch)

        async def body(node: GatedNode) -> tuple[NodeReply, NodeResult]:
            perform = self._transactions[invocation.node.kind]
            actor = invocation.run.header.actor
            result = await perform(Invocation(node.work, actor, resolved.parameters))
            return await node.complete(result, resolved.parameters), result

        done = await self._nodes.behind_gate(invocation, body)
        if isinstance(done, NodeReply):
            return done
        inject_fault(FaultPoint.AFTER_EFFECT_BEFORE_COMPLETION, invocation.key.run_id)
        reply, result = done
        invocation.run.keep(invocation.key.node_id, invocation.key.scope_key, result.output)
        return reply

    async def _label(
        self, invocation: CalledNode, result: NodeResult, parameters: JsonObject
    ) -> NodeReply:
        """Give the run the attributes of a node, with its success."""

        async def body(node: GatedNode) -> NodeReply:
            texts = as_texts(parameters["attributes"])
            await add_attributes(node.work, invocation.key.run_id, texts)
            return await node.complete(result, parameters)

        # Two nodes that share the run's row could not both go on to change it.
        reply = await self._nodes.behind_gate(invocation, body, exclusive=True)
        if reply.state is NodeState.SUCCEEDED:
            invocation.run.keep(invocation.key.node_id, invocation.key.scope_key, result.output)
        return reply

    async def _complete(
        self,
        invocation: CalledNode,
        result: NodeResult,
        inputs: JsonObject | None,
        batch: NodeBatch | None,
    ) -> NodeReply:
        if batch is None:
            return await self._nodes.complete_with_gate(invocation, result, inputs)
        batch.add(invocation.key, completion(result, inputs))
        return success(invocation.node.kind, result.outcome, result.case_key)


def is_quick(run: OpenRun, ref: NodeRef) -> bool:
    """True when a node is executed here: it is one transaction, or a loop of such nodes."""
    return run.costs[ref.node_id] is CostClass.QUICK

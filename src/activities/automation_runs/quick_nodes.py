"""Quick nodes: each one transaction, a batch of them one local activity (ADR 0001)."""

from collections import deque
from collections.abc import Mapping, Sequence

from activities.automation_runs.node_execution import CalledNode, GatedNode, NodeExecution
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
from models.automation.automations.rules.graph.kinds import CostClass, is_loop
from models.automation.automations.rules.planner.plan_state import PlanState
from models.automation.automations.rules.planner.protocol import NodeRef
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
        self, run: OpenRun, ready: Sequence[NodeRef], plan_state: PlanState | None
    ) -> QuickNodesReply:
        """Execute the ready nodes; with a plan state, also the quick nodes that become ready.

        It hurries where another kind of node is ready, so that one need not wait.
        Raises RunClosedError.
        """
        ends: list[NodeEnd] = []
        waiting = deque(ready)
        turn = Turn(BATCH_SECONDS)
        while waiting:
            ref = waiting.popleft()
            end = await self._end(run, ref, turn)
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

    async def _end(self, run: OpenRun, ref: NodeRef, turn: Turn) -> NodeEnd | LoopProgress:
        if is_loop(run.graph.nodes[ref.node_id].kind):
            return await self._loops.advance(run, ref, turn)
        reply = await self.execute(NodeCall(str(run.header.run_id), ref.node_id, ref.scope_key))
        if reply.state is NodeState.CLOSED:
            raise RunClosedError
        return NodeEnd(ref.node_id, ref.scope_key, reply)

    async def execute(self, call: NodeCall) -> NodeReply:
        """One node whose whole work is one transaction."""
        return await self._nodes.guarded(call, self._execute)

    async def _execute(self, invocation: CalledNode) -> NodeReply:
        substituted = substitute(invocation.run, invocation.node)
        if substituted is not None:
            return await self._nodes.complete_with_gate(invocation, substituted, None)
        resolved = await resolve_parameters(self._nodes.database, invocation)
        compute = COMPUTATIONS.get(invocation.node.kind)
        if compute is not None:
            result = await evaluate_bounded(lambda: compute(resolved.parameters, resolved.context))
            return await self._nodes.complete_with_gate(invocation, result, resolved.parameters)

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


def is_quick(run: OpenRun, ref: NodeRef) -> bool:
    """True when a node is executed here: it is one transaction, or a loop of such nodes."""
    return run.costs[ref.node_id] is CostClass.QUICK

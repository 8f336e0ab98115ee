"""Quick nodes and quick loops: effects are transactions, what computes shares one (ADR 0080).

Nodes that follow from each other are one local activity (ADR 0001). In a loop every effect is a
transaction of its own, unique by run, node and scope, as everywhere; nodes that only compute share
one, also with nodes of other iterations.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from activities import contracts
from activities.automation_runs import node_execution
from activities.automation_runs.loops import LoopNodes
from activities.automation_runs.nodes.invocation import Invocation, NodeResult, Transaction
from activities.automation_runs.nodes.logic import COMPUTATIONS
from activities.automation_runs.nodes.resolution import resolve_parameters, substitute
from activities.automation_runs.runs import OpenLoop, OpenRun
from models.automation.automation_runs import loops
from models.automation.automation_runs.node_writes import add_attributes
from models.automation.automation_runs.rules import RunClosedError
from models.automation.automations.rules.attributes import as_texts
from models.automation.automations.rules.graph.kinds import CostClass, is_loop
from models.automation.automations.rules.planner.planner import Planner, PlanState
from models.automation.automations.rules.planner.protocol import EndRun, NodeRef
from models.core.base import JsonObject
from runtime.processes.bounded_processes import evaluate_bounded
from runtime.processes.fault_injection import FaultPoint, inject_fault

CONCURRENT_TRANSACTIONS = 8
"""Transactions of one turn side by side: more would only wait for connections."""

Execute = Callable[
    [OpenRun, NodeRef, node_execution.NodeBatch | None], Awaitable[contracts.NodeReply]
]


class Turn:
    """The time a local activity takes, and what it does at once."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.room = asyncio.Semaphore(CONCURRENT_TRANSACTIONS)
        self.ended_loops: list[contracts.LoopProgress] = []
        """The progress of the loops that have ended in this turn, but for loops in other loops."""

    @property
    def over(self) -> bool:
        return time.monotonic() > self._until

    def hurry(self, seconds: float) -> None:
        """Something waits for this turn to end."""
        self._until = min(self._until, time.monotonic() + seconds)


@dataclass
class _Round:
    """One loop in one turn."""

    run: OpenRun
    ref: NodeRef
    loop: OpenLoop
    turn: Turn
    batch: node_execution.NodeBatch | None
    following: int
    """The iteration that is opened next."""
    paused: list[int]
    """Iterations that were begun in an earlier turn and are not over."""
    around: "_Round | None" = None
    open: set[int] = field(default_factory=set)
    failed: bool = False
    end: contracts.NodeEnd | None = None
    """A stop node's failure, or the loop's own when its next step could not be decided."""
    finished: bool = False
    """A repeat whose condition no longer holds."""

    @property
    def halted(self) -> bool:
        """True when no iteration of the loop continues in this turn."""
        around = self.around is not None and self.around.halted
        return self.turn.over or self.failed or self.end is not None or around

    @property
    def progress(self) -> JsonObject:
        return {"next": self.following, "open": sorted({*self.open, *self.paused})}

    @property
    def shown(self) -> contracts.LoopProgress:
        """The progress as operators see it."""
        ended = self.following - len(self.progress["open"])
        return contracts.LoopProgress(self.ref.node_id, self.ref.scope_key, ended, self.loop.count)

    @property
    def call(self) -> contracts.NodeCall:
        return contracts.NodeCall(str(self.run.header.run_id), self.ref.node_id, self.ref.scope_key)


class QuickLoops:
    """Runs loops of quick nodes in this process.

    When a turn is over, the loop's row keeps which iterations are done, and another turn, here or
    in another process, continues from there. A crash loses only that note of the last turn: effects
    of its iterations are found in their rows, and values that were only computed are computed
    again.
    """

    def __init__(self, nodes: node_execution.NodeExecution, execute: Execute) -> None:
        self._nodes = nodes
        self._execute = execute
        self._loops = LoopNodes(nodes)

    async def advance(
        self,
        run: OpenRun,
        ref: NodeRef,
        turn: Turn,
        batch: node_execution.NodeBatch | None,
        around: _Round | None = None,
    ) -> contracts.NodeEnd | contracts.LoopProgress:
        """Run a loop to its end, or until the turn is over; the end may be a stop node's.

        Nothing of the loop is left in the batch then. Raises RunClosedError, BatchRefusedError, and
        what a repetition may mend.
        """
        if batch is not None:
            await batch.write()
        call = contracts.NodeCall(str(run.header.run_id), ref.node_id, ref.scope_key)
        opening = await self._loops.opened(call)
        if isinstance(opening, contracts.NodeReply):
            return _end(ref, opening)
        before = opening.progress or {"next": 0, "open": []}
        paused = list(before["open"])
        state = _Round(run, ref, opening.loop, turn, batch, before["next"], paused, around)
        lanes = min(opening.loop.parallelism, CONCURRENT_TRANSACTIONS)
        # All lanes end before an error is raised: none may write after the batch is dropped.
        ended = await asyncio.gather(
            *(self._lane(state) for _ in range(lanes)), return_exceptions=True
        )
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        if batch is not None:
            await batch.write()
        return await self._over(state)

    async def _over(self, state: _Round) -> contracts.NodeEnd | contracts.LoopProgress:
        """The loop's answer once its lanes have stopped."""
        if state.end is not None:
            return state.end
        unfinished = state.open or state.paused or not self._is_exhausted(state)
        if unfinished and not state.failed:
            invocation = await self._nodes.called(state.call)
            async with self._nodes.database.transaction() as work:
                await loops.keep_progress(work, invocation.key, state.progress)
            return state.shown
        if state.around is None:
            state.turn.ended_loops.append(state.shown)
        end = contracts.LoopEndCall(state.call, not state.failed, state.following)
        return _end(state.ref, await self._loops.close(end))

    def _is_exhausted(self, state: _Round) -> bool:
        count = state.loop.count
        return state.finished if count is None else state.following >= count

    async def _lane(self, state: _Round) -> None:
        """Take one iteration after the other."""
        while not state.halted:
            begun = state.paused.pop(0) if state.paused else None
            index = await self._take(state) if begun is None else begun
            if index is None:
                return
            state.open.add(index)
            known = {} if begun is None else await self._ended(state, index)
            if await self._iterate(state, index, known):
                state.open.discard(index)

    async def _take(self, state: _Round) -> int | None:
        """The next iteration to begin."""
        if state.loop.count is None:
            return await self._take_if_it_goes_on(state)
        while state.following < state.loop.count:
            state.following += 1
            if not state.loop.indexes or state.following - 1 in state.loop.indexes:
                return state.following - 1
        return None

    async def _take_if_it_goes_on(self, state: _Round) -> int | None:
        index = state.following
        decided = await self._nodes.guarded(
            state.call, lambda invocation: self._loops.goes_on(invocation, index)
        )
        if isinstance(decided, contracts.NodeReply):
            state.end = _end(state.ref, decided)
            return None
        if not decided:
            state.finished = True
            return None
        state.following += 1
        return state.following - 1

    async def _ended(self, state: _Round, index: int) -> dict[str, contracts.NodeReply]:
        """The nodes an iteration ended in earlier turns, so that every turn comes further."""
        invocation = await self._nodes.called(state.call)
        async with self._nodes.database.statement() as work:
            rows = await loops.ended_nodes(work, invocation.key, state.ref.iteration(index))
        nodes = state.run.graph.nodes
        replies = {
            name: node_execution.ended_reply(row, nodes[name].kind) for name, row in rows.items()
        }
        return {name: reply for name, reply in replies.items() if reply is not None}

    async def _iterate(
        self, state: _Round, index: int, known: Mapping[str, contracts.NodeReply]
    ) -> bool:
        """Run an iteration; False when it continues in another turn."""
        body = state.run.body(state.ref.node_id, stops_on_error=state.loop.stops_on_error)
        planner = Planner(body.plan, state.ref.iteration(index), body.topology)
        commands = planner.begin()
        while not planner.ended:
            ref = planner.active[0]
            if ref.node_id in known:
                commands = planner.apply(_end(ref, known[ref.node_id]).event)
                continue
            if state.halted:
                return False
            end = await self._end(state, ref)
            if isinstance(end, contracts.LoopProgress):
                return False
            commands = planner.apply(end.event)
            if end.reply.state in (contracts.NodeState.STOPPED, contracts.NodeState.ABORTED):
                state.end = end
        ending = commands[-1]
        assert isinstance(ending, EndRun), "the last command of a plan"
        state.failed = state.failed or (not ending.succeeded and state.loop.stops_on_error)
        return True

    async def _end(self, state: _Round, ref: NodeRef) -> contracts.NodeEnd | contracts.LoopProgress:
        if is_loop(state.run.graph.nodes[ref.node_id].kind):
            return await self.advance(state.run, ref, state.turn, state.batch, state)
        async with state.turn.room:
            return _end(ref, await self._execute(state.run, ref, state.batch))


def _end(ref: NodeRef, reply: contracts.NodeReply) -> contracts.NodeEnd:
    """The end of a node. Raises RunClosedError when there is none."""
    if reply.state is contracts.NodeState.CLOSED:
        raise RunClosedError
    return contracts.NodeEnd(ref.node_id, ref.scope_key, reply)


BATCH_SECONDS = 2.0
"""Seconds of a batch; the nodes after it continue in another local activity."""
HURRY_SECONDS = 0.05
"""Seconds a batch continues when another kind of node is ready, which can start only after it."""


class QuickNodes:
    """Executes quick nodes, alone or as long as one follows from another."""

    def __init__(
        self, nodes: node_execution.NodeExecution, transactions: Mapping[str, Transaction]
    ) -> None:
        self._nodes = nodes
        self._transactions = transactions
        self._loops = QuickLoops(nodes, self.execute)

    async def run(
        self,
        run: OpenRun,
        ready: Sequence[NodeRef],
        plan_state: PlanState | None,
        batch: node_execution.NodeBatch | None,
    ) -> contracts.QuickNodesReply:
        """Execute the ready nodes; with a plan state, also the quick nodes that become ready.

        It hurries where another kind of node is ready, so that one need not wait. The caller writes
        the nodes left in the batch. Raises RunClosedError, BatchRefusedError.
        """
        ends: list[contracts.NodeEnd] = []
        waiting = deque(ready)
        turn = Turn(BATCH_SECONDS)
        while waiting:
            ref = waiting.popleft()
            end = await self._end(run, ref, turn, batch)
            if isinstance(end, contracts.LoopProgress):
                return contracts.QuickNodesReply(ends, loops=[*turn.ended_loops, end])
            ends.append(end)
            if plan_state is None:
                continue
            known = set(plan_state.active)
            plan_state.apply(end.event)
            active = dict.fromkeys(plan_state.active)
            fresh = [other for other in active if other not in known]
            waiting = deque(other for other in (*waiting, *fresh) if other in active)
            if not all(is_quick(run, other) for other in fresh):
                # The workflow starts the other nodes, and can only when this activity has returned.
                waiting = deque(other for other in waiting if is_quick(run, other))
                turn.hurry(HURRY_SECONDS)
            if turn.over:
                break
        return contracts.QuickNodesReply(ends, loops=turn.ended_loops)

    async def _end(
        self, run: OpenRun, ref: NodeRef, turn: Turn, batch: node_execution.NodeBatch | None
    ) -> contracts.NodeEnd | contracts.LoopProgress:
        if is_loop(run.graph.nodes[ref.node_id].kind):
            return await self._loops.advance(run, ref, turn, batch)
        reply = await self.execute(run, ref, batch)
        if reply.state is contracts.NodeState.CLOSED:
            raise RunClosedError
        return contracts.NodeEnd(ref.node_id, ref.scope_key, reply)

    async def execute(
        self, run: OpenRun, ref: NodeRef, batch: node_execution.NodeBatch | None
    ) -> contracts.NodeReply:
        """One node whose whole work is one transaction, or a part of the batch's.

        Raises RunClosedError, BatchRefusedError.
        """
        node = run.graph.nodes[ref.node_id]
        computes = node.kind in COMPUTATIONS and not node.names_attributes
        if batch is not None and (batch.is_due or not computes):
            await batch.write()
        call = contracts.NodeCall(str(run.header.run_id), ref.node_id, ref.scope_key)
        return await self._nodes.guarded(call, partial(self._execute, batch=batch), batch)

    async def _execute(
        self, invocation: node_execution.CalledNode, batch: node_execution.NodeBatch | None
    ) -> contracts.NodeReply:
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

        async def body(node: node_execution.GatedNode) -> tuple[contracts.NodeReply, NodeResult]:
            perform = self._transactions[invocation.node.kind]
            actor = invocation.run.header.actor_of(invocation.key.node_id)
            result = await perform(Invocation(node.work, actor, resolved.parameters))
            return await node.complete(result, resolved.parameters), result

        done = await self._nodes.behind_gate(invocation, body)
        if isinstance(done, contracts.NodeReply):
            return done
        inject_fault(FaultPoint.AFTER_EFFECT_BEFORE_COMPLETION, invocation.key.run_id)
        reply, result = done
        invocation.run.keep(invocation.key.node_id, invocation.key.scope_key, result.output)
        return reply

    async def _label(
        self, invocation: node_execution.CalledNode, result: NodeResult, parameters: JsonObject
    ) -> contracts.NodeReply:
        """Give the run the attributes of a node, with its success."""

        async def body(node: node_execution.GatedNode) -> contracts.NodeReply:
            texts = as_texts(parameters["attributes"])
            await add_attributes(node.work, invocation.key.run_id, texts)
            return await node.complete(result, parameters)

        # Two nodes that hold the run's row by a shared lock would deadlock when both change it.
        reply = await self._nodes.behind_gate(invocation, body, exclusive=True)
        if reply.state is contracts.NodeState.SUCCEEDED:
            invocation.run.keep(invocation.key.node_id, invocation.key.scope_key, result.output)
        return reply

    async def _complete(
        self,
        invocation: node_execution.CalledNode,
        result: NodeResult,
        inputs: JsonObject | None,
        batch: node_execution.NodeBatch | None,
    ) -> contracts.NodeReply:
        if batch is None:
            return await self._nodes.complete_with_gate(invocation, result, inputs)
        batch.add(invocation.key, node_execution.completion(result, inputs))
        return node_execution.success(invocation.node.kind, result.outcome, result.case_key)


def is_quick(run: OpenRun, ref: NodeRef) -> bool:
    """True when a node is executed here: it is one transaction, or a loop of such nodes."""
    return run.costs[ref.node_id] is CostClass.QUICK

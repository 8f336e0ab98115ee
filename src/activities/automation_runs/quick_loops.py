"""Loops whose whole body is quick: iterations side by side in one process, a turn at a time.

Every node is a transaction of its own, unique by run, node and scope, as everywhere. When a turn
is over, the loop's row keeps which iterations are done, and another turn, here or in another
process, goes on from there. A crash loses that note of the last turn alone: what its iterations
did is found in their rows.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from activities.automation_runs.loop_nodes import LoopNodes
from activities.automation_runs.node_execution import NodeExecution, ended_reply
from activities.automation_runs.open_loops import OpenLoop
from activities.automation_runs.runs import OpenRun
from activities.contracts import LoopProgress, NodeCall, NodeEnd, NodeReply, NodeState
from activities.loop_contracts import LoopEndCall
from models.automation.automation_runs import loops
from models.automation.automation_runs.errors import RunClosedError
from models.automation.automations.rules.graph.kinds import is_loop
from models.automation.automations.rules.planner.planner import Planner
from models.automation.automations.rules.planner.protocol import EndRun, NodeRef
from models.core.base import JsonObject

CONCURRENT_TRANSACTIONS = 8
"""Transactions of one turn side by side: more would only wait for connections."""

Execute = Callable[[NodeCall], Awaitable[NodeReply]]


class Turn:
    """The time a local activity takes, and what it does at once."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.room = asyncio.Semaphore(CONCURRENT_TRANSACTIONS)
        self.ended_loops: list[LoopProgress] = []
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
    following: int
    """The iteration that is opened next."""
    paused: list[int]
    """Iterations that were begun in an earlier turn and are not over."""
    around: "_Round | None" = None
    open: set[int] = field(default_factory=set)
    failed: bool = False
    end: NodeEnd | None = None
    """A stop node's, or the loop's own when it could not be decided how it goes on."""
    finished: bool = False
    """A repeat whose condition no longer holds."""

    @property
    def halted(self) -> bool:
        """True when nothing of the loop goes on in this turn."""
        around = self.around is not None and self.around.halted
        return self.turn.over or self.failed or self.end is not None or around

    @property
    def progress(self) -> JsonObject:
        return {"next": self.following, "open": sorted({*self.open, *self.paused})}

    @property
    def shown(self) -> LoopProgress:
        """The progress as operators see it."""
        ended = self.following - len(self.progress["open"])
        return LoopProgress(self.ref.node_id, self.ref.scope_key, ended, self.loop.count)

    @property
    def call(self) -> NodeCall:
        return NodeCall(str(self.run.header.run_id), self.ref.node_id, self.ref.scope_key)


class QuickLoops:
    """Runs loops of quick nodes in this process."""

    def __init__(self, nodes: NodeExecution, execute: Execute) -> None:
        self._nodes = nodes
        self._execute = execute
        self._loops = LoopNodes(nodes)

    async def advance(
        self, run: OpenRun, ref: NodeRef, turn: Turn, around: _Round | None = None
    ) -> NodeEnd | LoopProgress:
        """Run a loop to its end, or until the turn is over; the end may be a stop node's.

        Raises RunClosedError, and what a repetition may mend.
        """
        call = NodeCall(str(run.header.run_id), ref.node_id, ref.scope_key)
        opened = await self._loops.opened(call)
        if isinstance(opened, NodeReply):
            return _end(ref, opened)
        before = opened.progress or {"next": 0, "open": []}
        one = _Round(run, ref, opened.loop, turn, before["next"], list(before["open"]), around)
        lanes = min(opened.loop.parallelism, CONCURRENT_TRANSACTIONS)
        ended = await asyncio.gather(
            *(self._lane(one) for _ in range(lanes)), return_exceptions=True
        )
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        return await self._over(one)

    async def _over(self, one: _Round) -> NodeEnd | LoopProgress:
        """The loop's answer when its lanes have come to rest."""
        if one.end is not None:
            return one.end
        unfinished = one.open or one.paused or not self._is_exhausted(one)
        if unfinished and not one.failed:
            called = await self._nodes.called(one.call)
            async with self._nodes.database.transaction() as work:
                await loops.keep_progress(work, called.key, one.progress)
            return one.shown
        if one.around is None:
            one.turn.ended_loops.append(one.shown)
        end = LoopEndCall(one.call, not one.failed, one.following)
        return _end(one.ref, await self._loops.close(end))

    def _is_exhausted(self, one: _Round) -> bool:
        count = one.loop.count
        return one.finished if count is None else one.following >= count

    async def _lane(self, one: _Round) -> None:
        """Take one iteration after the other."""
        while not one.halted:
            begun = one.paused.pop(0) if one.paused else None
            index = await self._take(one) if begun is None else begun
            if index is None:
                return
            one.open.add(index)
            known = {} if begun is None else await self._ended(one, index)
            if await self._iterate(one, index, known):
                one.open.discard(index)

    async def _take(self, one: _Round) -> int | None:
        """The next iteration to begin."""
        if one.loop.count is None:
            return await self._take_if_it_goes_on(one)
        while one.following < one.loop.count:
            one.following += 1
            if not one.loop.chosen or one.following - 1 in one.loop.chosen:
                return one.following - 1
        return None

    async def _take_if_it_goes_on(self, one: _Round) -> int | None:
        index = one.following
        decided = await self._nodes.guarded(
            one.call, lambda called: self._loops.goes_on(called, index)
        )
        if isinstance(decided, NodeReply):
            one.end = _end(one.ref, decided)
            return None
        if not decided:
            one.finished = True
            return None
        one.following += 1
        return one.following - 1

    async def _ended(self, one: _Round, index: int) -> dict[str, NodeReply]:
        """The nodes an iteration ended in earlier turns, so that every turn comes further."""
        called = await self._nodes.called(one.call)
        async with self._nodes.database.statement() as work:
            rows = await loops.ended_nodes(work, called.key, one.ref.iteration(index))
        nodes = one.run.graph.nodes
        replies = {name: ended_reply(row, nodes[name].kind) for name, row in rows.items()}
        return {name: reply for name, reply in replies.items() if reply is not None}

    async def _iterate(self, one: _Round, index: int, known: Mapping[str, NodeReply]) -> bool:
        """Run an iteration; False when it goes on in another turn."""
        body = one.run.body(one.ref.node_id, stops_on_error=one.loop.stops_on_error)
        planner = Planner(body.plan, one.ref.iteration(index), body.topology)
        commands = planner.begin()
        while not planner.ended:
            ref = planner.active[0]
            if ref.node_id in known:
                commands = planner.apply(_end(ref, known[ref.node_id]).event)
                continue
            if one.halted:
                return False
            end = await self._end(one, ref)
            if isinstance(end, LoopProgress):
                return False
            commands = planner.apply(end.event)
            if end.reply.state in (NodeState.STOPPED, NodeState.ABORTED):
                one.end = end
        ending = commands[-1]
        assert isinstance(ending, EndRun), "the last command of a plan"
        one.failed = one.failed or (not ending.succeeded and one.loop.stops_on_error)
        return True

    async def _end(self, one: _Round, ref: NodeRef) -> NodeEnd | LoopProgress:
        if is_loop(one.run.graph.nodes[ref.node_id].kind):
            return await self.advance(one.run, ref, one.turn, one)
        call = NodeCall(str(one.run.header.run_id), ref.node_id, ref.scope_key)
        async with one.turn.room:
            return _end(ref, await self._execute(call))


def _end(ref: NodeRef, reply: NodeReply) -> NodeEnd:
    """The end of a node. Raises RunClosedError when there is none."""
    if reply.state is NodeState.CLOSED:
        raise RunClosedError
    return NodeEnd(ref.node_id, ref.scope_key, reply)

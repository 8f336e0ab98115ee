"""Which nodes of a run are next: a pure machine, state x event -> commands (decisions C8).

Dead-path elimination: a node runs once per scope when all its incoming edges are resolved and at
least one was taken; when none was, it is skipped. The workflow carries the commands out and feeds
the endings back. No clock, no randomness, no set is iterated: equal events give equal commands.
Standard library only.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from models.automations.rules.kinds import EdgeOutcome, JoinMode, OnError
from models.automations.rules.plan import Plan, PlanEdge
from models.automations.rules.protocol import (
    CancelNode,
    Command,
    EndLoop,
    EndRun,
    Event,
    IterationsReady,
    NodeFailed,
    NodeRef,
    NodeSucceeded,
    RunCancelled,
    RunStopped,
    SkipNode,
    StartNode,
)
from models.automations.rules.topology import ROOT, Topology, topology_of

__all__ = [
    "CancelNode",
    "Command",
    "EndLoop",
    "EndRun",
    "Event",
    "IterationsReady",
    "NodeFailed",
    "NodeRef",
    "NodeSucceeded",
    "Planner",
    "RunCancelled",
    "RunStopped",
    "SkipNode",
    "StartNode",
]


class _How(Enum):
    SUCCEEDED = 0
    FAILED = 1
    SKIPPED = 2


@dataclass(frozen=True, slots=True)
class _Ending:
    how: _How
    outcome: str = EdgeOutcome.ALWAYS
    case_key: str | None = None

    def takes(self, edge: PlanEdge) -> bool:
        """Whether an edge is taken: `always` on success only, `finally` never after a skip."""
        outcome = edge.outcome
        if self.how is _How.SUCCEEDED:
            if outcome in _TAKEN_ON_SUCCESS:
                return True
            return outcome == self.outcome and (
                outcome is not EdgeOutcome.CASE or edge.case_key == self.case_key
            )
        return self.how is _How.FAILED and outcome in _TAKEN_ON_FAILURE


_TAKEN_ON_SUCCESS = (EdgeOutcome.ALWAYS, EdgeOutcome.SUCCESS, EdgeOutcome.FINALLY)
_TAKEN_ON_FAILURE = (EdgeOutcome.FAILURE, EdgeOutcome.FINALLY)
_PASSED = _Ending(_How.SUCCEEDED)
_FAILED = _Ending(_How.FAILED)
_SKIPPED = _Ending(_How.SKIPPED)
_DONE = _Ending(_How.SUCCEEDED, EdgeOutcome.DONE)


@dataclass(slots=True)
class _Frame:
    """The nodes of the root or of one iteration, and how far each has come."""

    scope_key: str
    unresolved: int
    loop: "_Loop | None" = None
    arrivals: dict[str, list[int]] = field(default_factory=dict)
    """Per node: incoming edges still open, incoming edges taken."""
    decided: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Loop:
    """A loop node whose iterations run."""

    ref: NodeRef
    frame: _Frame
    count: int
    parallelism: int
    stop_on_error: bool
    opened: int = 0
    open: int = 0
    failed: NodeRef | None = None


class Planner:
    """The state of one run. `begin` once, then `apply` every event until `ended`."""

    __slots__ = ("_active", "_commands", "_ended", "_failed", "_loops", "_plan", "_queue", "_root",
                 "_topology")  # fmt: skip

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._topology: Topology = topology_of(plan)
        self._root = _Frame("", len(self._topology.bodies[ROOT]))
        self._active: dict[NodeRef, _Frame] = {}
        self._loops: dict[NodeRef, _Loop] = {}
        self._queue: deque[tuple[_Frame, str, _Ending]] = deque()
        self._commands: list[Command] = []
        self._failed: NodeRef | None = None
        self._ended = False

    @property
    def active(self) -> tuple[NodeRef, ...]:
        """The nodes that were started and have not ended, sorted."""
        return tuple(sorted(self._active))

    @property
    def ended(self) -> bool:
        """After the end or a cancellation there are no more commands."""
        return self._ended

    def begin(self) -> tuple[Command, ...]:
        """The first commands."""
        self._open(self._root, ROOT)
        return self._settle()

    def apply(self, event: Event) -> tuple[Command, ...]:
        """What follows from an event; nothing when it is late or about an unknown node."""
        if self._ended:
            return ()
        if isinstance(event, RunCancelled):
            self._cancel_all()
            self._ended = True
        elif event.ref in self._active:
            self._accept(event)
        return self._settle()

    def _accept(self, event: NodeSucceeded | NodeFailed | RunStopped | IterationsReady) -> None:
        ref = event.ref
        if isinstance(event, IterationsReady):
            self._iterate(event)
        elif isinstance(event, NodeFailed):
            if ref in self._loops:
                self._end_loop(self._loops[ref], succeeded=False)
            else:
                self._queue.append((self._active.pop(ref), ref.node_id, _FAILED))
        elif ref in self._loops:
            return  # iterations decide when a loop succeeds
        elif isinstance(event, RunStopped):
            del self._active[ref]
            self._end_run(EndRun(event.succeeded, None if event.succeeded else ref, ref))
        else:
            ending = _Ending(_How.SUCCEEDED, event.outcome, event.case_key)
            self._queue.append((self._active.pop(ref), ref.node_id, ending))

    def _settle(self) -> tuple[Command, ...]:
        """Follow every ending to the nodes it decides, until nothing more follows."""
        while self._queue and not self._ended:
            frame, node_id, ending = self._queue.popleft()
            if ending.how is _How.FAILED and not self._absorbs(frame, node_id):
                continue
            for edge in self._topology.ways_out[node_id]:
                self._arrive(frame, edge.target, taken=ending.takes(edge))
            frame.unresolved -= 1
            if frame.unresolved == 0 and frame.loop is not None:
                self._end_iteration(frame.loop)
        if not self._ended and not self._active:
            self._end_run(EndRun(self._failed is None, self._failed))
        commands = tuple(self._commands)
        self._commands.clear()
        return commands

    def _holds(self, frame: _Frame) -> bool:
        """Whether the frame is still open: a loop that ended early closes its iterations."""
        while frame.loop is not None:
            if self._loops.get(frame.loop.ref) is not frame.loop:
                return False
            frame = frame.loop.frame
        return True

    def _absorbs(self, frame: _Frame, node_id: str) -> bool:
        """Note a failure; False when it ends the loop or the run, so that nothing follows it."""
        if any(_FAILED.takes(edge) for edge in self._topology.ways_out[node_id]):
            return True
        ref = NodeRef(node_id, frame.scope_key)
        loop = frame.loop
        if loop is not None:
            loop.failed = loop.failed or ref
            if loop.stop_on_error:
                self._end_loop(loop, succeeded=False)
            return not loop.stop_on_error
        self._failed = self._failed or ref
        if self._plan.on_error is OnError.STOP:
            self._end_run(EndRun(succeeded=False, failed=self._failed))
            return False
        return True

    def _open(self, frame: _Frame, body: str) -> None:
        """Start a frame: its first nodes run, nodes that nothing leads to are skipped."""
        starts = self._topology.starts.get(body, ())
        for node_id in starts:
            self._decide(frame, node_id, runs=True)
        for node_id in self._topology.bodies.get(body, ()):
            if not self._topology.arrivals[node_id] and node_id not in frame.decided:
                self._decide(frame, node_id, runs=False)

    def _arrive(self, frame: _Frame, node_id: str, *, taken: bool) -> None:
        if node_id in frame.decided:
            return
        node = self._topology.nodes[node_id]
        arrivals = frame.arrivals.get(node_id)
        if arrivals is None:
            arrivals = [self._topology.arrivals[node_id], node.taken_before]
            frame.arrivals[node_id] = arrivals
        arrivals[0] -= 1
        arrivals[1] += taken
        still_open, taken_count = arrivals
        needed = node.join_count if node.join is JoinMode.COUNT else 1
        if taken_count + still_open < needed:
            self._decide(frame, node_id, runs=False)
        elif taken_count >= needed and (node.join is not JoinMode.ALL or not still_open):
            self._decide(frame, node_id, runs=True)

    def _decide(self, frame: _Frame, node_id: str, *, runs: bool) -> None:
        frame.decided.add(node_id)
        ref = NodeRef(node_id, frame.scope_key)
        if runs and not self._topology.nodes[node_id].disabled:
            self._active[ref] = frame
            self._commands.append(StartNode(ref))
        else:
            self._commands.append(SkipNode(ref))
            self._queue.append((frame, node_id, _PASSED if runs else _SKIPPED))

    def _iterate(self, event: IterationsReady) -> None:
        ref = event.ref
        if ref in self._loops:
            return
        loop = _Loop(ref, self._active[ref], event.count, max(1, event.parallelism),
                     event.stop_on_error)  # fmt: skip
        self._loops[ref] = loop
        if not self._topology.starts.get(ref.node_id):
            loop.count = 0
        self._open_iterations(loop)

    def _open_iterations(self, loop: _Loop) -> None:
        body = loop.ref.node_id
        while loop.open < loop.parallelism and loop.opened < loop.count:
            prefix = f"{loop.frame.scope_key}/" if loop.frame.scope_key else ""
            frame = _Frame(f"{prefix}{body}:{loop.opened}", len(self._topology.bodies[body]), loop)
            loop.opened += 1
            loop.open += 1
            self._open(frame, body)
        if not loop.open:
            self._end_loop(loop, succeeded=True)

    def _end_iteration(self, loop: _Loop) -> None:
        loop.open -= 1
        self._open_iterations(loop)

    def _end_loop(self, loop: _Loop, *, succeeded: bool) -> None:
        del self._loops[loop.ref]
        del self._active[loop.ref]
        for ref in [ref for ref in sorted(self._active) if not self._holds(self._active[ref])]:
            self._cancel(ref)
        self._commands.append(EndLoop(loop.ref, succeeded, loop.failed))
        self._queue.append((loop.frame, loop.ref.node_id, _DONE if succeeded else _FAILED))

    def _end_run(self, command: EndRun) -> None:
        self._cancel_all()
        self._ended = True
        self._commands.append(command)

    def _cancel_all(self) -> None:
        for ref in sorted(self._active):
            self._cancel(ref)

    def _cancel(self, ref: NodeRef) -> None:
        del self._active[ref]
        self._loops.pop(ref, None)
        self._commands.append(CancelNode(ref))

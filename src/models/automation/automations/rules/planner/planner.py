"""The next nodes of a run: a pure machine, state x event -> commands.

The workflow carries the commands out and feeds the endings back. A node runs once per scope when
all its incoming edges are resolved and at least one was taken; when none was, it is skipped
(dead-path elimination). No set is iterated, and every sequence is sorted, so that equal plans and
equal events give equal commands.

See interface.md#execution-of-a-graph.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from models.automation.automations.rules.graph.kinds import EdgeOutcome, JoinMode, OnError
from models.automation.automations.rules.planner import protocol
from models.automation.automations.rules.planner.plan import (
    ROOT,
    Plan,
    PlanEdge,
    PlanNode,
    homes_of,
    reached,
)

__all__ = ["ROOT", "Topology", "topology_of"]


class EndStatus(Enum):
    SUCCEEDED = 0
    FAILED = 1
    SKIPPED = 2


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a node, as far as edges ask for it."""

    status: EndStatus
    outcome: str = EdgeOutcome.ALWAYS
    case_key: str | None = None

    def takes(self, edge: PlanEdge) -> bool:
        """True when an edge is taken: `always` on success only, `finally` never after a skip.

        A node that timed out takes neither `always` nor `success`.
        """
        outcome = edge.outcome
        if self.status is EndStatus.SUCCEEDED:
            if outcome in _TAKEN_ON_SUCCESS:
                return self.outcome != EdgeOutcome.TIMEOUT or outcome == EdgeOutcome.FINALLY
            return outcome == self.outcome and (
                outcome is not EdgeOutcome.CASE or edge.case_key == self.case_key
            )
        return self.status is EndStatus.FAILED and outcome in _TAKEN_ON_FAILURE


_TAKEN_ON_SUCCESS = (EdgeOutcome.ALWAYS, EdgeOutcome.SUCCESS, EdgeOutcome.FINALLY)
_TAKEN_ON_FAILURE = (EdgeOutcome.FAILURE, EdgeOutcome.FINALLY)
PASSED = Ending(EndStatus.SUCCEEDED, EdgeOutcome.DONE)
"""A disabled node; if it is a loop, it is done."""
FAILED = Ending(EndStatus.FAILED)
SKIPPED = Ending(EndStatus.SKIPPED)


@dataclass(slots=True)
class ScopeState:
    """The nodes of the root or of one iteration, and how far each has come."""

    key: str
    unresolved: int
    loop: "LoopState | None" = None
    arrivals: dict[str, list[int]] = field(default_factory=dict)
    """Per node: incoming edges still open, incoming edges taken."""
    decided: set[str] = field(default_factory=set)


@dataclass(slots=True)
class LoopState:
    """A loop node whose iterations run."""

    ref: protocol.NodeRef
    scope: ScopeState
    parallelism: int
    stop_on_error: bool
    opened: int
    count: int = 0
    more: bool = False
    open: int = 0
    asked: bool = False
    """True while the decision on the next iteration is pending."""
    closing: bool = False
    """Its iterations are over; its own ending is not reported yet."""
    failed: protocol.NodeRef | None = None

    @property
    def ended(self) -> int:
        """The number of iterations that are over."""
        return self.opened - self.open


@dataclass(frozen=True, slots=True)
class Topology:
    """A plan, indexed. `home` is the innermost loop whose body holds the node.

    See interface.md#execution-of-a-graph.
    """

    nodes: dict[str, PlanNode]
    ways_out: dict[str, tuple[PlanEdge, ...]]
    """Edges inside one scope, the ones an ending of the node resolves."""
    bodies: dict[str, tuple[str, ...]]
    """The nodes at home in each loop, and in `ROOT`."""
    arrivals: dict[str, int]
    """Incoming edges from the same scope."""
    starts: dict[str, tuple[str, ...]]
    """Nodes that begin with the scope: the plan's entries, or the targets of `item`."""

    def handles_failure(self, node_id: str) -> bool:
        """True when an edge leads on from the node's failure, so that it fails nothing else."""
        return any(edge.outcome in _TAKEN_ON_FAILURE for edge in self.ways_out[node_id])


def topology_of(plan: Plan) -> Topology:
    """Index a plan. Edges that cross a scope, other than `item`, are no ways (C8: no escape)."""
    nodes = {node.id: node for node in sorted(plan.nodes, key=lambda node: node.id)}
    edges = sorted(plan.edges, key=_edge_order)
    home = homes_of(nodes, edges)
    ways_out: dict[str, list[PlanEdge]] = {node_id: [] for node_id in nodes}
    starts: dict[str, list[str]] = {ROOT: sorted(set(plan.entries))}
    arrivals = dict.fromkeys(nodes, 0)
    for edge in edges:
        if edge.outcome is EdgeOutcome.ITEM and home[edge.target] == edge.source:
            starts.setdefault(edge.source, []).append(edge.target)
        elif home[edge.source] == home[edge.target]:
            ways_out[edge.source].append(edge)
            arrivals[edge.target] += 1
    bodies: dict[str, list[str]] = {ROOT: []}
    for node_id in nodes:
        bodies.setdefault(home[node_id], []).append(node_id)
    return Topology(
        nodes,
        {node_id: tuple(ways) for node_id, ways in ways_out.items()},
        {loop: tuple(body) for loop, body in bodies.items()},
        arrivals,
        {loop: tuple(dict.fromkeys(first)) for loop, first in starts.items()},
    )


def _edge_order(edge: PlanEdge) -> tuple[str, str, str, str]:
    return edge.source, edge.target, edge.outcome.value, edge.case_key or ""


class Planner:
    """The state of one run, or of a part of it that lies in `scope_key`.

    `begin` once, then `apply` every event until `ended`. A caller that runs a plan many times
    passes its topology.
    """

    __slots__ = ("_active", "_commands", "_ended", "_failed", "_loops", "_on_error", "_queue",
                 "_resumed", "_root", "_topology")  # fmt: skip

    def __init__(self, plan: Plan, scope_key: str = "", topology: Topology | None = None) -> None:
        self._on_error = plan.on_error
        self._resumed = dict(plan.resumed)
        self._topology = topology or topology_of(plan)
        self._root = ScopeState(scope_key, len(self._topology.bodies[ROOT]))
        self._active: dict[protocol.NodeRef, ScopeState] = {}
        self._loops: dict[protocol.NodeRef, LoopState] = {}
        self._queue: deque[tuple[ScopeState, str, Ending]] = deque()
        self._commands: list[protocol.Command] = []
        self._failed: protocol.NodeRef | None = None
        self._ended = False

    @property
    def active(self) -> tuple[protocol.NodeRef, ...]:
        """The nodes that were started and have not ended, sorted."""
        return tuple(sorted(self._active))

    @property
    def ended(self) -> bool:
        """After the end or a cancellation there are no more commands."""
        return self._ended

    def iterations(self, ref: protocol.NodeRef) -> LoopState | None:
        """The progress of a loop's iterations; None unless they run here."""
        return self._loops.get(ref)

    def begin(self) -> tuple[protocol.Command, ...]:
        """Commands that start the entry nodes."""
        self._open(self._root, ROOT)
        return self._settle()

    def apply(self, event: protocol.Event) -> tuple[protocol.Command, ...]:
        """The commands that follow from an event; none when it is late or about an unknown node."""
        if self._ended:
            return ()
        if isinstance(event, protocol.RunCancelled):
            self._cancel_all()
            self._ended = True
        elif event.ref in self._active:
            self._accept(event)
        elif isinstance(event, protocol.RunStopped) and self._runs_elsewhere(event.ref):
            self._stop(event)
        return self._settle()

    def _accept(
        self,
        event: protocol.NodeSucceeded
        | protocol.NodeFailed
        | protocol.RunStopped
        | protocol.IterationsReady,
    ) -> None:
        ref = event.ref
        loop = self._loops.get(ref)
        if isinstance(event, protocol.IterationsReady):
            self._iterate(event)
        elif isinstance(event, protocol.NodeFailed):
            if loop is not None:
                self._drop(loop)
            self._queue.append((self._active.pop(ref), ref.node_id, FAILED))
        elif loop is not None and not loop.closing:
            return  # iterations decide when a loop succeeds
        elif isinstance(event, protocol.RunStopped):
            self._stop(event)
        else:
            self._loops.pop(ref, None)
            ending = Ending(EndStatus.SUCCEEDED, event.outcome, event.case_key)
            self._queue.append((self._active.pop(ref), ref.node_id, ending))

    def _stop(self, event: protocol.RunStopped) -> None:
        self._active.pop(event.ref, None)
        self._end_run(
            protocol.EndRun(event.succeeded, None if event.succeeded else event.ref, event.ref)
        )

    def _runs_elsewhere(self, ref: protocol.NodeRef) -> bool:
        """True when a loop around the node is active whose iterations do not run here."""
        loop = ref.loop
        while loop is not None:
            if loop in self._active:
                return loop not in self._loops
            loop = loop.loop
        return False

    def _settle(self) -> tuple[protocol.Command, ...]:
        """Follow every ending to the nodes it decides, until nothing more follows."""
        while self._queue and not self._ended:
            scope, node_id, ending = self._queue.popleft()
            if ending.status is EndStatus.FAILED and not self._absorbs(scope, node_id):
                continue
            for edge in self._topology.ways_out[node_id]:
                self._arrive(scope, edge.target, taken=ending.takes(edge))
            scope.unresolved -= 1
            if scope.unresolved == 0 and scope.loop is not None:
                self._end_iteration(scope.loop)
        if not self._ended and not self._active:
            self._end_run(protocol.EndRun(self._failed is None, self._failed))
        commands = tuple(self._commands)
        self._commands.clear()
        return commands

    def _holds(self, scope: ScopeState) -> bool:
        """True while the scope is open: a loop that ended early closes its iterations."""
        while scope.loop is not None:
            if scope.loop.closing or self._loops.get(scope.loop.ref) is not scope.loop:
                return False
            scope = scope.loop.scope
        return True

    def _absorbs(self, scope: ScopeState, node_id: str) -> bool:
        """Note a failure; False when it ends the loop or the run, so that nothing follows it."""
        if self._topology.handles_failure(node_id):
            return True
        ref = protocol.NodeRef(node_id, scope.key)
        loop = scope.loop
        if loop is not None:
            loop.failed = loop.failed or ref
            if loop.stop_on_error:
                self._end_loop(loop, succeeded=False)
            return not loop.stop_on_error
        self._failed = self._failed or ref
        if self._on_error is OnError.STOP:
            self._end_run(protocol.EndRun(succeeded=False, failed=self._failed))
            return False
        return True

    def _open(self, scope: ScopeState, body: str) -> None:
        """Start a scope: its first nodes run, nodes that nothing leads to are skipped."""
        starts = self._resumed.get(scope.key)
        if starts is None:
            starts = self._topology.starts.get(body, ())
        else:
            self._resume(scope, body, starts)
        for node_id in starts:
            self._decide(scope, node_id, runs=True)
        for node_id in self._topology.bodies.get(body, ()):
            if not self._topology.arrivals[node_id] and node_id not in scope.decided:
                self._decide(scope, node_id, runs=False)

    def _resume(self, scope: ScopeState, body: str, starts: tuple[str, ...]) -> None:
        """Begin an iteration in its middle: edges from what lies before count as taken.

        See interface.md#runs-from-a-node.
        """
        ways = {
            node_id: [edge.target for edge in self._topology.ways_out[node_id]]
            for node_id in self._topology.bodies[body]
        }
        kept = reached(starts, ways)
        scope.unresolved = len(kept)
        scope.decided.update(node_id for node_id in ways if node_id not in kept)
        still_open = dict.fromkeys(kept, 0)
        for node_id in kept:
            for target in ways[node_id]:
                still_open[target] += 1
        for node_id, count in still_open.items():
            taken = self._topology.nodes[node_id].taken_before
            scope.arrivals[node_id] = [count, taken + self._topology.arrivals[node_id] - count]

    def _arrive(self, scope: ScopeState, node_id: str, *, taken: bool) -> None:
        if node_id in scope.decided:
            return
        node = self._topology.nodes[node_id]
        arrivals = scope.arrivals.get(node_id)
        if arrivals is None:
            arrivals = [self._topology.arrivals[node_id], node.taken_before]
            scope.arrivals[node_id] = arrivals
        arrivals[0] -= 1
        arrivals[1] += taken
        still_open, taken_count = arrivals
        needed = node.join_count if node.join is JoinMode.COUNT else 1
        if taken_count + still_open < needed:
            self._decide(scope, node_id, runs=False)
        elif taken_count >= needed and (node.join is not JoinMode.ALL or not still_open):
            self._decide(scope, node_id, runs=True)

    def _decide(self, scope: ScopeState, node_id: str, *, runs: bool) -> None:
        scope.decided.add(node_id)
        ref = protocol.NodeRef(node_id, scope.key)
        if runs and not self._topology.nodes[node_id].disabled:
            self._active[ref] = scope
            self._commands.append(protocol.StartNode(ref))
        else:
            self._commands.append(protocol.SkipNode(ref))
            self._queue.append((scope, node_id, PASSED if runs else SKIPPED))

    def _iterate(self, event: protocol.IterationsReady) -> None:
        ref = event.ref
        loop = self._loops.get(ref)
        if loop is None:
            parallelism = max(1, event.parallelism)
            loop = LoopState(ref, self._active[ref], parallelism, event.stop_on_error, event.first)
            self._loops[ref] = loop
        elif loop.closing:
            return
        empty = not self._topology.starts.get(ref.node_id)
        loop.count = loop.opened if empty else event.count
        loop.more = event.more and not empty
        loop.asked = False
        self._open_iterations(loop)

    def _open_iterations(self, loop: LoopState) -> None:
        body = loop.ref.node_id
        chosen = self._chosen(loop.ref)
        while loop.open < loop.parallelism and loop.opened < loop.count:
            scope_key = loop.ref.iteration(loop.opened)
            loop.opened += 1
            if chosen and scope_key not in chosen:
                continue
            loop.open += 1
            self._open(ScopeState(scope_key, len(self._topology.bodies[body]), loop), body)
        if loop.open or loop.asked:
            return
        if loop.more:
            loop.asked = True
            self._commands.append(protocol.NextIteration(loop.ref, loop.opened))
        else:
            self._end_loop(loop, succeeded=True)

    def _chosen(self, ref: protocol.NodeRef) -> tuple[str, ...]:
        """The iterations of a loop that run; empty when all do."""
        return tuple(scope for scope in self._resumed if protocol.NodeRef("", scope).loop == ref)

    def _end_iteration(self, loop: LoopState) -> None:
        loop.open -= 1
        self._open_iterations(loop)

    def _end_loop(self, loop: LoopState, *, succeeded: bool) -> None:
        loop.closing = True
        self._drop_iterations()
        self._commands.append(protocol.EndLoop(loop.ref, succeeded, loop.opened, loop.failed))

    def _drop(self, loop: LoopState) -> None:
        del self._loops[loop.ref]
        self._drop_iterations()

    def _drop_iterations(self) -> None:
        """Cancel what is active in iterations whose loop has ended."""
        for ref in sorted(ref for ref, scope in self._active.items() if not self._holds(scope)):
            self._cancel(ref)

    def _end_run(self, command: protocol.EndRun) -> None:
        self._cancel_all()
        self._ended = True
        self._commands.append(command)

    def _cancel_all(self) -> None:
        for ref in sorted(self._active):
            self._cancel(ref)

    def _cancel(self, ref: protocol.NodeRef) -> None:
        del self._active[ref]
        self._loops.pop(ref, None)
        self._commands.append(protocol.CancelNode(ref))


class PlanState:
    """The progress of a run. `applied` counts its events, so that two states can be compared.

    Nodes that were skipped are kept for the root alone. In an iteration they are the nodes of the
    body that have no row once it has ended, so that memory does not grow with iterations.

    The workflow holds one, and so does the worker that executes a batch of quick nodes. Fed the
    same events in the same order, the two are equal.
    """

    __slots__ = ("_planner", "applied", "asking", "ending", "skipped")

    def __init__(self, plan: Plan, scope_key: str = "") -> None:
        self._planner = Planner(plan, scope_key)
        self.applied = 0
        self.skipped: list[protocol.NodeRef] = []
        self.asking: dict[protocol.NodeRef, protocol.NextIteration | protocol.EndLoop] = {}
        """The loops that wait for the decision on an iteration, or for their own end."""
        self.ending: protocol.EndRun | None = None
        self._note(self._planner.begin())

    @property
    def active(self) -> tuple[protocol.NodeRef, ...]:
        """Nodes that may run or are running, sorted."""
        return self._planner.active

    def iterations(self, ref: protocol.NodeRef) -> LoopState | None:
        """The progress of a loop; None unless its iterations are part of this plan state."""
        return self._planner.iterations(ref)

    def apply(self, event: protocol.Event) -> None:
        """A node has ended, or a loop knows more of its iterations."""
        self.applied += 1
        if not isinstance(event, protocol.RunCancelled):
            self.asking.pop(event.ref, None)
        self._note(self._planner.apply(event))

    def _note(self, commands: tuple[protocol.Command, ...]) -> None:
        for command in commands:
            match command:
                case protocol.SkipNode(ref) if not ref.scope_key:
                    self.skipped.append(ref)
                case protocol.CancelNode(ref):
                    self.asking.pop(ref, None)
                case protocol.NextIteration() | protocol.EndLoop():
                    self.asking[command.ref] = command
                case protocol.EndRun():
                    self.ending = command

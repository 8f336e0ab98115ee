"""The messages between workflows and activities: ids and small values only.

See architecture.md#no-user-data.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from models.automation.automations.rules.planner import protocol
from runtime.temporal.workflow_kinds import WorkflowKind


@dataclass(frozen=True, slots=True)
class NodeCall:
    """Execute one node in one scope of a run."""

    run_id: str
    node_id: str
    scope_key: str = ""


class NodeState(StrEnum):
    """The state in which a node's activity ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    """A stop node succeeded: the run ends as succeeded."""
    ABORTED = "aborted"
    """A stop node succeeded: the run ends as failed."""
    WAITING = "waiting"
    """The node is parked for `seconds`."""
    ITERATING = "iterating"
    """A loop is open, and its iterations run."""
    CLOSED = "closed"
    """The run has ended or was cancelled; nothing was done."""


@dataclass(frozen=True, slots=True)
class NodeReply:
    """`outcome` and `case_key` are what the planner follows edges by."""

    state: NodeState
    outcome: str = "always"
    case_key: str | None = None
    attempt: int = 1
    seconds: float | None = 0
    """None for a wait that time does not end."""
    code: str | None = None
    """Of a failure."""


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of a loop from `first` up to `count`; `more` are decided one by one.

    `most` is the highest number it can reach.
    """

    count: int
    parallelism: int = 1
    stop_on_error: bool = True
    more: bool = False
    first: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """A node that has ended, or a loop that has `iterations` to run, as an event."""

    node_id: str
    scope_key: str
    reply: NodeReply
    iterations: Iterations | None = None

    @property
    def ref(self) -> protocol.NodeRef:
        return protocol.NodeRef(self.node_id, self.scope_key)

    @property
    def event(self) -> protocol.Event:
        """The event for the planner."""
        reply, ready = self.reply, self.iterations
        if ready is not None:
            return protocol.IterationsReady(
                self.ref,
                ready.count,
                ready.parallelism,
                ready.stop_on_error,
                ready.more,
                ready.first,
            )
        if reply.state is NodeState.SUCCEEDED:
            return protocol.NodeSucceeded(self.ref, reply.outcome, reply.case_key)
        if reply.state is NodeState.FAILED:
            return protocol.NodeFailed(self.ref)
        return protocol.RunStopped(self.ref, succeeded=reply.state is NodeState.STOPPED)


@dataclass(frozen=True, slots=True)
class QuickNodesCall:
    """Execute the quick nodes that are ready, and the nodes that follow from them (ADR 0001).

    `applied` events were known to the workflow before the ends in `ends`, which the worker's
    plan state has not applied yet. `part` tells the executions of one run apart; the first has
    none.
    """

    run_id: str
    ready: list[tuple[str, str]]
    applied: int
    ends: list[NodeEnd] = field(default_factory=list)
    part: str = ""


@dataclass(frozen=True, slots=True)
class LoopProgress:
    """The progress of a loop of quick nodes, which continues in the next batch or has ended."""

    node_id: str
    scope_key: str
    ended: int
    count: int | None


@dataclass(frozen=True, slots=True)
class QuickNodesReply:
    """The nodes that ended, in order; `ended` says how the run ended, if it did.

    `attributes` are all that the run has, where nodes of its graph give it some.
    """

    ends: list[NodeEnd]
    ended: str | None = None
    loops: list[LoopProgress] = field(default_factory=list)
    attributes: dict[str, str] | None = None

    @property
    def goes_on(self) -> bool:
        """True when a loop has iterations left, so that another batch follows."""
        over = {end.ref for end in self.ends}
        return any(protocol.NodeRef(one.node_id, one.scope_key) not in over for one in self.loops)


WAITS_FOR_SLOT = "waits_for_slot"
"""The end of a batch that did not begin: the run begins when it is admitted.

See interface.md#concurrency.
"""


@dataclass(frozen=True, slots=True)
class RunBegun:
    """The frozen plan of the run, and the first batch; no plan when the run is closed."""

    plan: dict[str, Any] | None
    batch: QuickNodesReply
    limit_seconds: float = 0
    """The seconds the run may last from its start."""


@dataclass(frozen=True, slots=True)
class ParkCall:
    """Begin a wait. `now` is the workflow's time in seconds since the epoch.

    See interface.md#expressions.
    """

    node: NodeCall
    now: float


@dataclass(frozen=True, slots=True)
class CalledRun:
    """An accepted run that a workflow starts as its child; `request` is that of its start.

    One that is `in_line` is started when it has its turn among the others of its workspace.
    """

    run_id: str
    workspace_id: str
    request: dict[str, Any]
    workflow_kind: Annotated[
        WorkflowKind,
        # Histories of before have the second name.
        Field(validation_alias=AliasChoices("workflow_kind", "family")),
    ] = WorkflowKind.AUTOMATION_RUN
    in_line: bool = False


@dataclass(frozen=True, slots=True)
class ParkReply(NodeReply):
    """A parked node, or its end if there was nothing to wait for."""

    reminder_seconds: float | None = None
    """The interval at which the people who are asked are reminded."""
    reminded: int = 0
    """The number of reminders they have had."""
    called: CalledRun | None = None
    """The run whose end is the node's."""

    @property
    def end(self) -> NodeReply:
        """The end alone."""
        return NodeReply(self.state, self.outcome, self.case_key, self.attempt)


@dataclass(frozen=True, slots=True)
class WakeCall:
    """Continue a parked node. Unless its time is `over`, only if its wait is resolved."""

    run_id: str
    node_id: str
    scope_key: str = ""
    over: bool = True

    @property
    def node(self) -> NodeCall:
        return NodeCall(self.run_id, self.node_id, self.scope_key)


@dataclass(frozen=True, slots=True)
class SuspendCall:
    """An execution only waits, and for those in the places `below` it too if there are any.

    `skipped` are the nodes, each in a scope, which it knows since it rested last that the run will
    not come to.
    """

    run_id: str
    below: list[str]
    skipped: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RemindCall:
    """Remind the people who have not answered, for the `number`th time."""

    node: NodeCall
    number: int


@dataclass(frozen=True, slots=True)
class FinishCall:
    """The end of a run as its planner saw it; `skipped` are the nodes that never ran."""

    run_id: str
    succeeded: bool
    decisive_node: NodeCall | None = None
    """The unhandled failure, or the stop node, that ended the run."""
    skipped: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(
        cls, run_id: str, ending: protocol.EndRun, skipped: Iterable[protocol.NodeRef]
    ) -> "FinishCall":
        """The end of a run as its planner says it."""
        decisive = ending.decisive
        return cls(
            run_id=run_id,
            succeeded=ending.succeeded,
            decisive_node=(
                None if decisive is None else NodeCall(run_id, decisive.node_id, decisive.scope_key)
            ),
            skipped=[(ref.node_id, ref.scope_key) for ref in skipped],
        )


@dataclass(frozen=True, slots=True)
class LoopReply:
    """A loop's end, or that it iterates; WAITING says that `seconds` pass before it does."""

    reply: NodeReply
    iterations: Iterations | None = None


@dataclass(frozen=True, slots=True)
class IterationCall:
    """Decide whether a loop continues with iteration `index`."""

    loop: NodeCall
    index: int


@dataclass(frozen=True, slots=True)
class LoopEndCall:
    """Write the end of a loop of which `opened` iterations were begun."""

    loop: NodeCall
    succeeded: bool
    opened: int


def part_of(loop: NodeCall) -> str:
    """The name of the executions of a loop's chunks, which come one after the other."""
    return f"{loop.scope_key}/{loop.node_id}"


@dataclass(frozen=True, slots=True)
class ChunkCall:
    """Run a part of a loop's iterations in an execution of its own."""

    loop: NodeCall
    iterations: Iterations

    @property
    def part(self) -> str:
        """The name of its execution among the executions of the run."""
        return part_of(self.loop)


@dataclass(frozen=True, slots=True)
class ChunkOpened:
    """The loop with its body; no plan when the run is closed."""

    plan: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ChunkReply:
    """The end of a chunk: `state` as of a loop, or CLOSED; `end` is the stop node that ended it."""

    state: NodeState
    opened: int = 0
    end: NodeEnd | None = None

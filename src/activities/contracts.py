"""What workflows and activities hand each other: ids and small facts only (promise I8)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from models.automations.rules.protocol import (
    Event,
    NodeFailed,
    NodeRef,
    NodeSucceeded,
    RunStopped,
)


@dataclass(frozen=True, slots=True)
class NodeCall:
    """Execute one node in one scope of a run."""

    run_id: str
    node_id: str
    scope_key: str = ""


class NodeState(StrEnum):
    """How a node's activity ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    """A stop node succeeded: the run ends as succeeded."""
    ABORTED = "aborted"
    """A stop node succeeded: the run ends as failed."""
    WAITING = "waiting"
    """The node is parked for `seconds`."""
    CLOSED = "closed"
    """The run has ended or was cancelled; nothing was done."""


@dataclass(frozen=True, slots=True)
class NodeReply:
    """`outcome` and `case_key` are what the planner follows edges by."""

    state: NodeState
    outcome: str = "always"
    case_key: str | None = None
    attempt: int = 1
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """A node that has ended, as courses are told of it."""

    node_id: str
    scope_key: str
    reply: NodeReply

    @property
    def ref(self) -> NodeRef:
        return NodeRef(self.node_id, self.scope_key)

    @property
    def event(self) -> Event:
        """What the planner makes of it."""
        reply = self.reply
        if reply.state is NodeState.SUCCEEDED:
            return NodeSucceeded(self.ref, reply.outcome, reply.case_key)
        if reply.state is NodeState.FAILED:
            return NodeFailed(self.ref)
        return RunStopped(self.ref, succeeded=reply.state is NodeState.STOPPED)


@dataclass(frozen=True, slots=True)
class StretchCall:
    """Execute the quick nodes that are ready, and those that follow from them (ADR 0001).

    `applied` events were known to the workflow before those in `ends`, which the worker's course
    has not heard of yet.
    """

    run_id: str
    ready: list[tuple[str, str]]
    applied: int
    ends: list[NodeEnd] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StretchReply:
    """The nodes that ended, in order; `ended` says how the run ended, if it did."""

    ends: list[NodeEnd]
    ended: str | None = None


@dataclass(frozen=True, slots=True)
class RunBegun:
    """The frozen plan of the run, and the first stretch; no plan when the run is closed."""

    plan: dict[str, Any] | None
    stretch: StretchReply


@dataclass(frozen=True, slots=True)
class ParkCall:
    """Begin a wait. `now` is the workflow's time in seconds since the epoch (decisions C11)."""

    node: NodeCall
    now: float


@dataclass(frozen=True, slots=True)
class FinishCall:
    """The end of a run as its planner saw it; `skipped` are the nodes that never ran."""

    run_id: str
    succeeded: bool
    decisive_node: NodeCall | None = None
    """The unhandled failure, or the stop node, that ended the run."""
    skipped: list[tuple[str, str]] = field(default_factory=list)

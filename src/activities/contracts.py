"""What workflows and activities hand each other: ids and small facts only (promise I8)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


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
class RunBegun:
    """The frozen plan of the run; absent when the run is closed."""

    plan: dict[str, Any] | None


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

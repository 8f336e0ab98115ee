"""What the planner and the workflow say to each other: commands out, events in.

Standard library only.
"""

from dataclasses import dataclass

from models.automations.rules.kinds import EdgeOutcome


@dataclass(frozen=True, slots=True, order=True)
class NodeRef:
    """A node in a scope: `""` is the run itself, `loop1:3/loop2:0` an iteration of nested loops."""

    node_id: str
    scope_key: str = ""


@dataclass(frozen=True, slots=True)
class StartNode:
    ref: NodeRef


@dataclass(frozen=True, slots=True)
class SkipNode:
    """The node will not run: its path is dead, or it is disabled."""

    ref: NodeRef


@dataclass(frozen=True, slots=True)
class CancelNode:
    """End a started node; whatever it still reports is ignored."""

    ref: NodeRef


@dataclass(frozen=True, slots=True)
class EndLoop:
    """All iterations of a loop node ended, or one failed and the loop stops on errors."""

    ref: NodeRef
    succeeded: bool
    failed: NodeRef | None = None


@dataclass(frozen=True, slots=True)
class EndRun:
    """The last command. `failed` is the first unhandled failure, `stopped_by` the stop node."""

    succeeded: bool
    failed: NodeRef | None = None
    stopped_by: NodeRef | None = None


Command = StartNode | SkipNode | CancelNode | EndLoop | EndRun


@dataclass(frozen=True, slots=True)
class NodeSucceeded:
    """`outcome` is what a condition or switch chose; `case_key` belongs to `case`."""

    ref: NodeRef
    outcome: str = EdgeOutcome.ALWAYS
    case_key: str | None = None


@dataclass(frozen=True, slots=True)
class NodeFailed:
    ref: NodeRef


@dataclass(frozen=True, slots=True)
class RunStopped:
    """A stop node ran: the run ends with its result."""

    ref: NodeRef
    succeeded: bool


@dataclass(frozen=True, slots=True)
class RunCancelled:
    pass


@dataclass(frozen=True, slots=True)
class IterationsReady:
    """A loop node knows its items; its body runs `count` times, `parallelism` at a time."""

    ref: NodeRef
    count: int
    parallelism: int = 1
    stop_on_error: bool = True


Event = NodeSucceeded | NodeFailed | RunStopped | RunCancelled | IterationsReady

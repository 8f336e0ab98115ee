"""The messages between workflows and activities about loops (promise I8)."""

from dataclasses import dataclass
from typing import Any

from activities.contracts import Iterations, NodeCall, NodeEnd, NodeReply, NodeState


@dataclass(frozen=True, slots=True)
class LoopReply:
    """A loop's end, or that it iterates; WAITING says that `seconds` pass before it does."""

    reply: NodeReply
    iterations: Iterations | None = None


@dataclass(frozen=True, slots=True)
class IterationCall:
    """Decide whether a loop goes on with iteration `index`."""

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

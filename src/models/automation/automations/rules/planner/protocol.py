"""The messages between the planner and the workflow, and the scopes that a node sees."""

from collections.abc import Collection
from dataclasses import dataclass

from models.automation.automations.rules.graph.kinds import EdgeOutcome


@dataclass(frozen=True, slots=True, order=True)
class NodeRef:
    """A node in a scope: `""` is the run itself, `loop1:3/loop2:0` an iteration of nested loops."""

    node_id: str
    scope_key: str = ""

    @property
    def loop(self) -> "NodeRef | None":
        """The loop node whose iteration this is in; None in the root."""
        around, _, last = self.scope_key.rpartition("/")
        return NodeRef(last.rpartition(":")[0], around) if last else None

    def iteration(self, index: int) -> str:
        """The scope key of an iteration of this node, a loop."""
        return f"{self.iterations}{index}"

    @property
    def iterations(self) -> str:
        """The prefix of the scope keys of this loop's iterations, and of all inside them."""
        return f"{self.scope_key}/{self.node_id}:".removeprefix("/")


@dataclass(frozen=True, slots=True)
class StartNode:
    ref: NodeRef


@dataclass(frozen=True, slots=True)
class SkipNode:
    """The node will not run: its path is dead, or it is disabled."""

    ref: NodeRef


@dataclass(frozen=True, slots=True)
class CancelNode:
    """End a started node; its later reports are ignored."""

    ref: NodeRef


@dataclass(frozen=True, slots=True)
class NextIteration:
    """Ask whether a loop continues with iteration `index`; answered by `IterationsReady`."""

    ref: NodeRef
    index: int


@dataclass(frozen=True, slots=True)
class EndLoop:
    """All iterations of a loop node ended, or one failed and the loop stops on errors.

    Nothing follows before the loop's own ending is reported. `opened` counts its iterations.
    """

    ref: NodeRef
    succeeded: bool
    opened: int
    failed: NodeRef | None = None


@dataclass(frozen=True, slots=True)
class EndRun:
    """The last command. `failed` is the first unhandled failure, `stopped_by` the stop node."""

    succeeded: bool
    failed: NodeRef | None = None
    stopped_by: NodeRef | None = None

    @property
    def decisive(self) -> NodeRef | None:
        """The node that ended the run, None where it ended because nothing was left to do."""
        return self.stopped_by or self.failed


Command = StartNode | SkipNode | CancelNode | NextIteration | EndLoop | EndRun


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
    """A stop node ran, here or in an iteration that runs elsewhere: the run ends as it says."""

    ref: NodeRef
    succeeded: bool


@dataclass(frozen=True, slots=True)
class RunCancelled:
    pass


@dataclass(frozen=True, slots=True)
class IterationsReady:
    """The body of a loop runs from iteration `first` up to `count`, `parallelism` at a time.

    With `more`, whether there is another one is asked when these have ended. Reported again, it
    changes their number.
    """

    ref: NodeRef
    count: int
    parallelism: int = 1
    stop_on_error: bool = True
    more: bool = False
    first: int = 0


Event = NodeSucceeded | NodeFailed | RunStopped | RunCancelled | IterationsReady


def own_scopes(scope_key: str) -> list[str]:
    """A scope and those around it, the innermost first."""
    scopes = [scope_key]
    while scope_key:
        scope_key = scope_key.rpartition("/")[0]
        scopes.append(scope_key)
    return scopes


def earlier_scopes(scope_key: str, repeats: Collection[str]) -> list[str]:
    """The iterations before, of the repeats around a scope, the innermost first.

    What a repeat has computed is seen until the next iteration computes it anew.
    """
    earlier = []
    for scope in own_scopes(scope_key)[:-1]:
        loop, index = loop_of(scope), index_of(scope)
        if loop.node_id in repeats and index > 0:
            earlier.append(loop.iteration(index - 1))
    return earlier


def loop_of(scope_key: str) -> NodeRef:
    """The loop that a scope other than the root is an iteration of."""
    loop = NodeRef("", scope_key).loop
    assert loop is not None, "the root is no iteration"
    return loop


def index_of(scope_key: str) -> int:
    """The index of the iteration that a scope other than the root is."""
    return int(scope_key.rpartition(":")[2])

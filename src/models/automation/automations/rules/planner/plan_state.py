"""The progress of a plan's execution: its planner, and the sum of the planner's commands.

The workflow holds a plan state, and so does the worker that executes a batch of quick nodes. Fed
the same events in the same order, the two are equal. Standard library only.
"""

from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.rules.planner.planner import Planner
from models.automation.automations.rules.planner.protocol import (
    CancelNode,
    Command,
    EndLoop,
    EndRun,
    Event,
    NextIteration,
    NodeRef,
    RunCancelled,
    SkipNode,
)
from models.automation.automations.rules.planner.scope_state import LoopState


class PlanState:
    """The progress of a run. `applied` counts its events, so that two states can be compared.

    Nodes that were skipped are kept for the root alone. In an iteration they are the nodes of the
    body that have no row once it has ended, so that memory does not grow with iterations.
    """

    __slots__ = ("_planner", "applied", "asking", "ending", "skipped")

    def __init__(self, plan: Plan, scope_key: str = "") -> None:
        self._planner = Planner(plan, scope_key)
        self.applied = 0
        self.skipped: list[NodeRef] = []
        self.asking: dict[NodeRef, NextIteration | EndLoop] = {}
        """The loops that wait for the decision on an iteration, or for their own end."""
        self.ending: EndRun | None = None
        self._note(self._planner.begin())

    @property
    def active(self) -> tuple[NodeRef, ...]:
        """Nodes that may run or are running, sorted."""
        return self._planner.active

    def iterations(self, ref: NodeRef) -> LoopState | None:
        """The progress of a loop; None unless its iterations are part of this plan state."""
        return self._planner.iterations(ref)

    def apply(self, event: Event) -> None:
        """A node has ended, or a loop knows more of its iterations."""
        self.applied += 1
        if not isinstance(event, RunCancelled):
            self.asking.pop(event.ref, None)
        self._note(self._planner.apply(event))

    def _note(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            match command:
                case SkipNode(ref) if not ref.scope_key:
                    self.skipped.append(ref)
                case CancelNode(ref):
                    self.asking.pop(ref, None)
                case NextIteration() | EndLoop():
                    self.asking[command.ref] = command
                case EndRun():
                    self.ending = command

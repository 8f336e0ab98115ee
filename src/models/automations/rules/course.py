"""A run's course: its planner, and what the planner's commands have added up to.

The workflow and the worker that follows a stretch of quick nodes each hold one; fed the same
events in the same order, they are equal. Standard library only.
"""

from models.automations.rules.plan import Plan
from models.automations.rules.planner import Planner
from models.automations.rules.protocol import Command, EndRun, Event, NodeRef, SkipNode


class Course:
    """Where a run stands. `applied` counts its events, so that two courses can be compared."""

    __slots__ = ("_planner", "applied", "ending", "skipped")

    def __init__(self, plan: Plan) -> None:
        self._planner = Planner(plan)
        self.applied = 0
        self.skipped: list[NodeRef] = []
        self.ending: EndRun | None = None
        self._note(self._planner.begin())

    @property
    def active(self) -> tuple[NodeRef, ...]:
        """Nodes that may run or are running, sorted."""
        return self._planner.active

    def apply(self, event: Event) -> None:
        """A node has ended."""
        self.applied += 1
        self._note(self._planner.apply(event))

    def _note(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            if isinstance(command, SkipNode):
                self.skipped.append(command.ref)
            elif isinstance(command, EndRun):
                self.ending = command

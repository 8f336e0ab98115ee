"""The state of each scope and loop in the planner, and which edges an ending takes.

Standard library only.
"""

from dataclasses import dataclass, field
from enum import Enum

from models.automation.automations.rules.graph.kinds import EdgeOutcome
from models.automation.automations.rules.planner.plan import PlanEdge
from models.automation.automations.rules.planner.protocol import NodeRef


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

    ref: NodeRef
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
    failed: NodeRef | None = None

    @property
    def ended(self) -> int:
        """The number of iterations that are over."""
        return self.opened - self.open

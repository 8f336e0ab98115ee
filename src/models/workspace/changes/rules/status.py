"""The states of a change set and of its operations, its author and its approval. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from models.core.lifecycle.rules import Lifecycle
from models.workspace.changes.rules.kinds import Stake


class ChangeSource(StrEnum):
    """The author of the operations."""

    MODEL = "model"
    RULES = "rules"
    HAND = "hand"


class ChangeStatus(StrEnum):
    PLANNED = "planned"
    AWAITING_APPROVAL = "awaiting_approval"
    """It was applied as far as was approved; the rest may still be."""
    APPLYING = "applying"
    APPLIED = "applied"
    PARTIALLY_APPLIED = "partially_applied"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"


_ENDS = frozenset({ChangeStatus.APPLIED, ChangeStatus.PARTIALLY_APPLIED, ChangeStatus.FAILED})
_DROPPED = frozenset({ChangeStatus.REJECTED, ChangeStatus.EXPIRED})

TRANSITIONS: dict[ChangeStatus, frozenset[ChangeStatus]] = {
    ChangeStatus.PLANNED: _DROPPED | {ChangeStatus.APPLYING},
    ChangeStatus.AWAITING_APPROVAL: _DROPPED | {ChangeStatus.APPLYING},
    ChangeStatus.APPLYING: _ENDS | {ChangeStatus.AWAITING_APPROVAL},
    **{end: frozenset[ChangeStatus]() for end in sorted(_ENDS | _DROPPED)},
}
CHANGE_LIFECYCLE = Lifecycle(TRANSITIONS)
WAITING = (ChangeStatus.PLANNED, ChangeStatus.AWAITING_APPROVAL)
"""The states in which a change set may be applied, rejected, or expire."""


class ResultStatus(StrEnum):
    PENDING = "pending"
    APPLIED = "applied"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one operation; one that is `held` may still be applied."""

    status: ResultStatus
    needs_approval: bool = False
    error: str | None = None
    subject_id: str | None = None

    @property
    def held(self) -> bool:
        """Neither applied nor failed."""
        return self.status in {ResultStatus.PENDING, ResultStatus.SKIPPED}


@dataclass(frozen=True, slots=True)
class Approval:
    """The approved operations: all that may be approved together, and single ones."""

    every: bool = False
    indexes: Collection[int] = ()

    def covers(self, index: int, stake: Stake) -> bool:
        """True when an operation may be applied."""
        if stake is Stake.NEVER_ASK or index in self.indexes:
            return True
        return stake is Stake.ASK and self.every


def waits_for(
    index: int, uses: Collection[int], outcomes: Sequence[Outcome], stake: Stake, approval: Approval
) -> Outcome | None:
    """The reason why an operation is not applied now; None when it is to be.

    `uses` are the operations it refers to.
    """
    if not approval.covers(index, stake):
        return Outcome(ResultStatus.SKIPPED, needs_approval=True)
    for use in sorted(uses):
        other = outcomes[use]
        if other.status is ResultStatus.FAILED:
            error = f"Operation {use}, on which it builds, failed."
            return Outcome(ResultStatus.FAILED, error=error)
        if other.held:
            error = f"Operation {use}, on which it builds, was not applied."
            return Outcome(ResultStatus.SKIPPED, error=error)
    return None


def end_of(outcomes: Sequence[Outcome]) -> ChangeStatus:
    """The state of a change set when every operation was looked at."""
    if any(one.held for one in outcomes):
        return ChangeStatus.AWAITING_APPROVAL
    failed = sum(one.status is ResultStatus.FAILED for one in outcomes)
    if failed == 0:
        return ChangeStatus.APPLIED
    return ChangeStatus.FAILED if failed == len(outcomes) else ChangeStatus.PARTIALLY_APPLIED

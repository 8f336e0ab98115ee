"""The states of a run and of its workspaces, and what follows from them. Pure.

See interface.md#legacy-import-states.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from models.core.lifecycle.rules import Lifecycle

ROLLBACK_WINDOW = timedelta(days=30)
"""The time after its end in which a run can be rolled back."""
HIDDEN_WINDOW = timedelta(days=30)
"""The time after its start for which a run surely keeps what it hides: as long as the trash."""
MAX_ATTEMPTS = 5
"""The number of times the import of one workspace may be begun."""
PARALLEL = 3
"""Workspaces of one run that are worked on at once."""


class LegacyImportStatus(StrEnum):
    UPLOADED = "uploaded"
    VALIDATING = "validating"
    DRY_RUNNING = "dry_running"
    AWAITING_REVIEW = "awaiting_review"
    APPROVED = "approved"
    IMPORTING = "importing"
    VERIFYING = "verifying"
    COMPLETED = "completed"
    COMPLETED_WITH_WARNINGS = "completed_with_warnings"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    ROLLING_BACK = "rolling_back"
    ROLLED_BACK = "rolled_back"
    ROLLBACK_FAILED = "rollback_failed"


class Mode(StrEnum):
    """The mode of a run: a dry run, which has written nothing, until it is started."""

    DRY_RUN = "dry_run"
    APPLY = "apply"


class ImportStage(StrEnum):
    """The progress of the import of one workspace."""

    QUEUED = "queued"
    VALIDATING = "validating"
    DRY_RUN = "dry_run"
    READY = "ready"
    BLOCKED = "blocked"
    CREATING = "creating"
    SCHEMA = "schema"
    RECORDS = "records"
    RELATIONS = "relations"
    FILES = "files"
    CONTENT = "content"
    AUTOMATIONS = "automations"
    VERIFYING = "verifying"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class LifecycleState(StrEnum):
    """The state of the workspace that an entry makes or fills."""

    PENDING = "pending"
    HIDDEN = "hidden"
    LIVE = "live"
    REMOVED = "removed"


class RollbackState(StrEnum):
    NONE = "none"
    REQUESTED = "requested"
    RUNNING = "running"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    EXPIRED = "expired"


class Outcome(StrEnum):
    """The result of comparing the imported data with the bundle."""

    EQUAL = "equal"
    WITHIN_TOLERANCE = "within_tolerance"
    DIFFERENT = "different"


_S = LegacyImportStatus
_ROLLBACK = frozenset({_S.ROLLING_BACK})

RUN_LIFECYCLE = Lifecycle(
    {
        _S.UPLOADED: frozenset({_S.VALIDATING, _S.FAILED, _S.CANCELLED}),
        _S.VALIDATING: frozenset({_S.DRY_RUNNING, _S.FAILED, _S.CANCELLED}),
        _S.DRY_RUNNING: frozenset({_S.AWAITING_REVIEW, _S.FAILED, _S.CANCELLED}),
        _S.AWAITING_REVIEW: frozenset({_S.DRY_RUNNING, _S.APPROVED, _S.FAILED, _S.CANCELLED}),
        _S.APPROVED: frozenset({_S.IMPORTING, _S.FAILED, _S.CANCELLED}),
        _S.IMPORTING: frozenset({_S.VERIFYING, _S.FAILED, _S.CANCELLING}),
        _S.VERIFYING: frozenset(
            {_S.IMPORTING, _S.COMPLETED, _S.COMPLETED_WITH_WARNINGS, _S.FAILED, _S.CANCELLING}
        ),
        _S.CANCELLING: frozenset({_S.CANCELLED, _S.FAILED}),
        _S.COMPLETED: _ROLLBACK,
        _S.COMPLETED_WITH_WARNINGS: _ROLLBACK | {_S.IMPORTING},
        _S.FAILED: _ROLLBACK | {_S.IMPORTING},
        _S.CANCELLED: _ROLLBACK,
        _S.ROLLING_BACK: frozenset({_S.ROLLED_BACK, _S.ROLLBACK_FAILED}),
        _S.ROLLED_BACK: _ROLLBACK,
        _S.ROLLBACK_FAILED: _ROLLBACK,
    },
    at_rest=frozenset(
        {
            _S.COMPLETED,
            _S.COMPLETED_WITH_WARNINGS,
            _S.FAILED,
            _S.CANCELLED,
            _S.ROLLED_BACK,
            _S.ROLLBACK_FAILED,
        }
    ),
)
WORKED_ON = frozenset(
    {_S.UPLOADED, _S.VALIDATING, _S.DRY_RUNNING, _S.IMPORTING, _S.VERIFYING, _S.CANCELLING}
    | {_S.ROLLING_BACK}
)
"""The states in which a run needs a worker. In the others it has ended, or waits for a person."""
"""A run at rest has no execution; a rollback or a retry gives it another one."""

AT_ONCE_CANCELLED = frozenset(
    {_S.UPLOADED, _S.VALIDATING, _S.DRY_RUNNING, _S.AWAITING_REVIEW, _S.APPROVED}
)
"""Nothing has been written yet, so there is nothing to roll back."""
TAKEN_BACK = frozenset({_S.IMPORTING, _S.VERIFYING})
"""A cancel rolls back unfinished workspaces first."""
REVERSIBLE = frozenset(
    {
        _S.COMPLETED,
        _S.COMPLETED_WITH_WARNINGS,
        _S.FAILED,
        _S.CANCELLED,
        _S.ROLLED_BACK,
        _S.ROLLBACK_FAILED,
    }
)
RELEASED_IN = frozenset({_S.FAILED, _S.CANCELLED, _S.ROLLED_BACK, _S.ROLLBACK_FAILED})
"""The statuses in which a workspace may be whole and verified, and yet hidden."""
RETRIED_IN = frozenset({_S.IMPORTING, _S.VERIFYING, _S.COMPLETED_WITH_WARNINGS, _S.FAILED})
WAITING = frozenset({_S.AWAITING_REVIEW, _S.APPROVED})
"""A person has the next move."""
END_WITH_DATA = frozenset({_S.COMPLETED, _S.COMPLETED_WITH_WARNINGS})

IMPORT_STAGES = (
    ImportStage.CREATING,
    ImportStage.SCHEMA,
    ImportStage.RECORDS,
    ImportStage.RELATIONS,
    ImportStage.FILES,
    ImportStage.CONTENT,
    ImportStage.AUTOMATIONS,
)
"""The stages that importing one workspace passes through, in this order."""
IMPORTED = frozenset({ImportStage.VERIFYING, ImportStage.DONE})
ENDED = frozenset(
    {ImportStage.DONE, ImportStage.FAILED, ImportStage.SKIPPED, ImportStage.CANCELLED}
)
CHECKED = frozenset({ImportStage.READY, ImportStage.BLOCKED, ImportStage.SKIPPED})


class StepKind(StrEnum):
    """The next step of the execution of a run."""

    MOVE = "move"
    """Nothing is left in this status; the run goes to the one named."""
    VALIDATE = "validate"
    COMPARE = "compare"
    """Look whether the bundle is still the one that was approved."""
    WORKSPACES = "workspaces"
    """Work on each of these workspaces in an execution of its own."""
    WAIT = "wait"
    END = "end"


@dataclass(frozen=True, slots=True)
class Entry:
    """The facts that decide about a workspace of a run."""

    id: UUID
    selected: bool
    stage: ImportStage
    lifecycle_state: LifecycleState
    rollback_state: RollbackState
    warned: bool
    """True when it was imported with warnings or differences within the tolerance."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next status of a run and what is to be done in it."""

    status: LegacyImportStatus
    kind: StepKind
    entries: tuple[UUID, ...] = ()


def next_step(status: LegacyImportStatus, entries: Sequence[Entry]) -> Step:
    """The step of a run in a status, given its workspaces."""
    if status in RUN_LIFECYCLE.at_rest:
        return Step(status, StepKind.END)
    if status == LegacyImportStatus.UPLOADED:
        return Step(LegacyImportStatus.VALIDATING, StepKind.MOVE)
    if status == LegacyImportStatus.VALIDATING:
        return Step(status, StepKind.VALIDATE)
    if status in WAITING:
        return Step(status, StepKind.WAIT)
    left = tuple(one.id for one in entries if _is_left(status, one))
    begun = any(one.selected and one.stage != ImportStage.QUEUED for one in entries)
    if status == LegacyImportStatus.IMPORTING and not begun:
        return Step(status, StepKind.COMPARE)
    if left:
        return Step(status, StepKind.WORKSPACES, left)
    return Step(_after(status, entries), StepKind.MOVE)


def _is_left(status: LegacyImportStatus, entry: Entry) -> bool:
    """True when a workspace has work left that belongs to the status of its run."""
    match status:
        case LegacyImportStatus.DRY_RUNNING:
            return entry.selected and entry.stage not in CHECKED
        case LegacyImportStatus.IMPORTING:
            return entry.selected and entry.stage not in IMPORTED | ENDED
        case LegacyImportStatus.VERIFYING:
            return entry.stage == ImportStage.VERIFYING
        case LegacyImportStatus.CANCELLING:
            return entry.selected and entry.stage not in ENDED
        case _:
            return entry.rollback_state in {RollbackState.REQUESTED, RollbackState.RUNNING}


def _after(status: LegacyImportStatus, entries: Sequence[Entry]) -> LegacyImportStatus:
    """The status that follows when no workspace has work left."""
    match status:
        case LegacyImportStatus.DRY_RUNNING:
            return LegacyImportStatus.AWAITING_REVIEW
        case LegacyImportStatus.IMPORTING:
            some = any(entry.selected and entry.stage in IMPORTED for entry in entries)
            return LegacyImportStatus.VERIFYING if some else LegacyImportStatus.FAILED
        case LegacyImportStatus.VERIFYING:
            return _verdict(entries)
        case LegacyImportStatus.CANCELLING:
            return LegacyImportStatus.CANCELLED
        case _:
            failed = any(entry.rollback_state == RollbackState.FAILED for entry in entries)
            return LegacyImportStatus.ROLLBACK_FAILED if failed else LegacyImportStatus.ROLLED_BACK


def _verdict(entries: Sequence[Entry]) -> LegacyImportStatus:
    """The end of a run whose workspaces are verified."""
    chosen = [one for one in entries if one.selected]
    done = [one for one in chosen if one.stage == ImportStage.DONE]
    if not done:
        return LegacyImportStatus.FAILED
    clean = len(done) == len(chosen) and not any(one.warned for one in done)
    return LegacyImportStatus.COMPLETED if clean else LegacyImportStatus.COMPLETED_WITH_WARNINGS


def is_within_tolerance(rows: int, equal: int) -> bool:
    """True when enough of the sampled rows are as in the bundle for an import to count as whole."""
    return equal * 100 >= rows * 99

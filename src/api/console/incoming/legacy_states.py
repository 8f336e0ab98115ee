"""The state of a legacy import run for its page: signs of its stages, and what may be decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.workspace.legacy_imports.rules import (
    AT_ONCE_CANCELLED,
    MAX_ATTEMPTS,
    RELEASED_IN,
    RETRIED_IN,
    RUN_LIFECYCLE,
    TAKEN_BACK,
    WAITING,
    ImportStage,
    LegacyImportStatus,
    LifecycleState,
    RollbackState,
)
from models.workspace.legacy_imports.shapes import ImportWorkspaceEntry, LegacyImport

_S = LegacyImportStatus
_SIGNS: Mapping[str, str] = {
    "awaiting_review": "waiting",
    "approved": "waiting",
    "completed": "succeeded",
    "completed_with_warnings": "succeeded",
    "rolled_back": "succeeded",
    "rollback_failed": "failed",
    "failed": "failed",
    "blocked": "failed",
    "cancelled": "cancelled",
    "skipped": "skipped",
    "queued": "queued",
    "uploaded": "queued",
    "ready": "waiting",
    "done": "succeeded",
}
_STAGES = (
    ("Check", "reads the bundle, and what would come of each row"),
    ("Review", "waits for an administrator"),
    ("Import", "writes what is selected, and verifies it"),
)
_PLACES: Mapping[LegacyImportStatus, int] = {
    _S.UPLOADED: 0,
    _S.VALIDATING: 0,
    _S.DRY_RUNNING: 0,
    _S.AWAITING_REVIEW: 1,
    _S.APPROVED: 1,
    _S.IMPORTING: 2,
    _S.VERIFYING: 2,
}
CANCELLABLE = AT_ONCE_CANCELLED | TAKEN_BACK


@dataclass(frozen=True, slots=True)
class Choices:
    """The decisions that a run takes as it is now; `obstacle` is why it cannot be approved."""

    approve: bool
    check_again: bool
    start: bool
    cancel: bool
    release: bool
    roll_back: bool
    force: bool
    obstacle: str


def sign(name: str) -> str:
    """The sign of a status or a stage; all that is not listed goes on."""
    return _SIGNS.get(name, "running")


def goes_on(run: LegacyImport) -> bool:
    """True while the run changes by itself."""
    return run.status not in RUN_LIFECYCLE.at_rest | WAITING


def stages_of(run: LegacyImport) -> list[tuple[str, str, str | None]]:
    """The three stages: name, what it does, and its sign once it was reached."""
    return [(name, does, _stage(run, place)) for place, (name, does) in enumerate(_STAGES)]


def _stage(run: LegacyImport, place: int) -> str | None:
    here = _PLACES.get(run.status)
    if here is not None:
        return sign(run.status) if here == place else "succeeded" if place < here else None
    reached = 2 if run.started_at else 1 if run.approved_at or run.workspaces else 0
    if place < reached:
        return "succeeded"
    verdict = "succeeded" if run.status.startswith("roll") else sign(run.status)
    return verdict if place == reached else None


def choices_of(run: LegacyImport) -> Choices:
    """The decisions that the run takes now."""
    review = run.status is _S.AWAITING_REVIEW
    obstacle = _obstacle(run.workspaces) if review else ""
    is_at_rest = run.status in RUN_LIFECYCLE.at_rest
    partial = any(one.rollback_state is RollbackState.PARTIAL for one in run.workspaces)
    there = {LifecycleState.HIDDEN, LifecycleState.LIVE}
    holds = any(one.lifecycle_state in there for one in run.workspaces)
    return Choices(
        approve=review and not obstacle,
        check_again=review and any(one.selected for one in run.workspaces),
        start=run.status is _S.APPROVED,
        cancel=run.status in CANCELLABLE,
        release=run.status in RELEASED_IN and any(map(_is_whole, run.workspaces)),
        roll_back=is_at_rest and holds and not partial,
        force=is_at_rest and partial,
        obstacle=obstacle,
    )


def may_retry(run: LegacyImport, entry: ImportWorkspaceEntry) -> bool:
    """True for a workspace that can go on from where its import failed."""
    return (
        run.status in RETRIED_IN
        and entry.stage is ImportStage.FAILED
        and entry.rollback_state is RollbackState.NONE
        and entry.attempt < MAX_ATTEMPTS
    )


def _is_whole(entry: ImportWorkspaceEntry) -> bool:
    """Tell a workspace that is whole, and yet hidden."""
    return (
        entry.stage is ImportStage.DONE
        and entry.lifecycle_state is LifecycleState.HIDDEN
        and entry.rollback_state is RollbackState.NONE
    )


def _obstacle(entries: Sequence[ImportWorkspaceEntry]) -> str:
    """The reason that what is selected cannot be approved as it is; empty when it can."""
    selection = [entry for entry in entries if entry.selected]
    blocked = [entry.source_name for entry in selection if entry.stage is ImportStage.BLOCKED]
    if blocked:
        return f"Before it can be approved, leave out what is blocked: {', '.join(blocked)}."
    if not selection:
        return "Before it can be approved, select a workspace."
    if all(entry.stage is ImportStage.READY for entry in selection):
        return ""
    return "Before it can be approved, check again: a workspace has not been checked."

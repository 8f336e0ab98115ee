"""The bounds, errors and row type of undos of runs. Pure."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id
from runtime.errors import RunError

AT_ONCE = 500
"""Records that one transaction reverts."""
MAX_CALLED = 10_000
"""Runs that a run may have called, directly or not, and still be undone."""
MAX_SEARCHED = 100
"""Runs whose nodes are searched for records that were deleted for good."""
MAX_CONFLICTS = 1_000
"""Conflicts that an undo keeps; it counts them all."""

STOPPED = "stopped"
"""The stage of an undo whose operation ended before it: what it has reverted stays."""

STILL_OPEN = "The run is still open. Wait until it ends, or cancel it."
CALLED_OPEN = "A run that this run called is still open. Wait until it ends, or cancel it."
TOO_MANY = f"The run called more than {MAX_CALLED:,} runs. Undo those one by one."
UNDO_RUNNING = "An undo of this run is in progress. Wait until it ends."


class NotUndoableRunError(RunError):
    """The run cannot be undone as it is now."""

    advice = "Read the run and its undos, and try again when they have ended."


class RunUndoRow(Protocol):
    """One undo of a run."""

    id: Id
    workspace_id: Id
    run_id: Id
    undoes_id: Id | None
    operation_id: Id | None
    actor_user_id: Id
    stage: str
    after_record_id: Id | None
    runs: int
    records: int
    reverted: int
    conflict_count: int
    conflicts: list[dict[str, Any]]
    created_at: datetime
    completed_at: datetime | None

"""The states of an operation over runs, its actions, bounds, errors and row type."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from models.automation.automation_runs.rules import ENDED_RUN, OPEN_RUN, RunStatus
from models.core.base import Id, JsonObject
from models.core.lifecycle.rules import Lifecycle
from runtime.errors import ConflictError, PlatformError

MAX_IDS = 100_000
"""Runs that a request may name by their ids."""
MAX_RUNS = 1_000_000
"""Runs that a filter may select; the oldest are taken."""
SELECTED_AT_ONCE = 10_000
"""Runs that one transaction writes down while the selection is made."""
CHUNK = 250
"""Runs that one transaction treats."""
MAX_RATE = 1_000
MIN_RATE = 0.01
"""Runs a second."""
ROOM_PAUSE = 1.0
"""Seconds until an operation looks again for room."""


class OperationAction(StrEnum):
    """The treatment of each run of an operation."""

    CANCEL = "cancel"
    RETRY = "retry"
    RESUME = "resume"
    UNDO = "undo"
    REPLAY = "replay"
    """Events of the inbox are replayed: they take the place of the runs."""


class OperationStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunOutcome(StrEnum):
    """The outcome of an operation for one run; `skipped` means that there was nothing to do."""

    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    FAILED = "failed"


_ENDS = frozenset({OperationStatus.FAILED, OperationStatus.CANCELLED})

TRANSITIONS: Mapping[OperationStatus, frozenset[OperationStatus]] = {
    OperationStatus.QUEUED: frozenset({OperationStatus.RUNNING, OperationStatus.PAUSED}) | _ENDS,
    OperationStatus.RUNNING: frozenset({OperationStatus.PAUSED, OperationStatus.SUCCEEDED}) | _ENDS,
    OperationStatus.PAUSED: frozenset({OperationStatus.QUEUED, OperationStatus.CANCELLED}),
    OperationStatus.SUCCEEDED: frozenset(),
    OperationStatus.FAILED: frozenset(),
    OperationStatus.CANCELLED: frozenset(),
}

OPERATION_LIFECYCLE = Lifecycle(TRANSITIONS, at_rest=frozenset({OperationStatus.PAUSED}))
OPEN_OPERATION = OPERATION_LIFECYCLE.open
"""The states with an execution. A paused operation has none until it is resumed."""

_FITTING: Mapping[str, tuple[RunStatus, ...]] = {
    OperationAction.CANCEL: OPEN_RUN,
    OperationAction.RETRY: ENDED_RUN,
    OperationAction.RESUME: (RunStatus.RUNNING, RunStatus.WAITING),
    OperationAction.UNDO: ENDED_RUN,
}


def fitting(action: str, parameters: JsonObject) -> tuple[RunStatus, ...]:
    """The statuses of the runs that an action applies to; a filter selects no others."""
    statuses = _FITTING[action]
    if action == OperationAction.RETRY and parameters.get("from") == "failed":
        return tuple(status for status in statuses if status != RunStatus.SUCCEEDED)
    return statuses


def chunk_of(rate: float | None) -> int:
    """The runs that one transaction treats at a rate: as many as in a second, at least one."""
    return CHUNK if rate is None else min(CHUNK, max(1, math.floor(rate)))


STARTING = (OperationAction.RETRY, OperationAction.REPLAY)
"""Actions that start runs, and wait for room."""

UNKNOWN = "Run not found, or you can't edit it."
_LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Treated:
    """The outcome of an operation for one run."""

    run_id: Id
    outcome: RunOutcome
    reason: str | None = None
    new_run_id: Id | None = None


def reason_of(error: PlatformError) -> str:
    """The reason for which a run was skipped or failed."""
    return error.message[:_LONGEST_REASON]


class OperationEndedError(ConflictError):
    """The operation has ended: it can be neither paused nor resumed."""

    def __init__(self) -> None:
        super().__init__("The operation has ended. Start a new one.")


class NotPausedError(ConflictError):
    """The operation is running: there is nothing to resume."""

    def __init__(self) -> None:
        super().__init__("The operation is not paused.")


class NotUndoableError(ConflictError):
    """The effects of the operation are final, or it still runs."""


class OperationRow(Protocol):
    """An operation: `selection` says of which runs, `parameters` what is done to each."""

    id: Id
    workspace_id: Id
    actor_user_id: Id
    action: str
    status: str
    selection: dict[str, Any]
    parameters: dict[str, Any]
    rate: float | None
    undoes_id: Id | None
    execution: int
    selected: int
    total: int | None
    treated: int
    succeeded: int
    skipped: int
    failed: int
    paced_until: datetime | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None


def turns(operation: OperationRow, count: int) -> Sequence[int]:
    """The positions of the next runs: an undo begins with the newest, which wrote last.

    An operation that undoes an undo begins with the oldest again.
    """
    assert operation.total is not None, "the runs are selected"
    last = min(operation.total, operation.treated + count)
    if operation.action == OperationAction.UNDO and operation.undoes_id is None:
        return range(operation.total - operation.treated, operation.total - last, -1)
    return range(operation.treated + 1, last + 1)

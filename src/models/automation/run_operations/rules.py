"""The states of an operation over runs, its actions and bounds. Pure."""

import math
from collections.abc import Mapping
from enum import StrEnum

from models.automation.automation_runs.rules import ENDED_RUN, OPEN_RUN, RunStatus
from models.core.base import JsonObject
from models.core.lifecycle.rules import Lifecycle

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
    CANCEL = "cancel"
    RETRY = "retry"
    RESUME = "resume"


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
"""The states with an execution. A paused operation has none until somebody resumes it."""


_FITTING: Mapping[str, tuple[RunStatus, ...]] = {
    OperationAction.CANCEL: OPEN_RUN,
    OperationAction.RETRY: ENDED_RUN,
    OperationAction.RESUME: (RunStatus.RUNNING, RunStatus.WAITING),
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

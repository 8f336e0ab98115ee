"""States of runs and node runs, and the moves between them (interface, States; decisions C8)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from models.core.lifecycle.rules import Lifecycle


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class NodeStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class RunSource(StrEnum):
    """The requester of a run: a person, a trigger, or another run."""

    MANUAL = "manual"
    TEST = "test"
    FROM_NODE = "from_node"
    REPLAY = "replay"
    BACKFILL = "backfill"
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    RECORD = "record"
    FORM = "form"
    BUTTON = "button"
    DATA_SOURCE = "data_source"
    FAILURE = "failure"
    AUTOMATION = "automation"
    TIME_ENTRY = "time_entry"


def is_test(source: str, options: Mapping[str, Any]) -> bool:
    """True for a run that is a test, or a retry of one: mocks apply, and nobody is notified."""
    return source == RunSource.TEST or bool(options.get("test"))


_RUN_ENDS = frozenset({RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.TIMED_OUT})

RUN_TRANSITIONS: Mapping[RunStatus, frozenset[RunStatus]] = {
    # A run that never started can fail: its workflow may end before its first transaction.
    RunStatus.QUEUED: frozenset({RunStatus.RUNNING}) | _RUN_ENDS,
    RunStatus.RUNNING: frozenset({RunStatus.WAITING, RunStatus.SUCCEEDED}) | _RUN_ENDS,
    RunStatus.WAITING: frozenset({RunStatus.RUNNING, RunStatus.SUCCEEDED}) | _RUN_ENDS,
    RunStatus.SUCCEEDED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.CANCELLED: frozenset(),
    RunStatus.TIMED_OUT: frozenset(),
}

_NODE_ENDS = frozenset({NodeStatus.SUCCEEDED, NodeStatus.FAILED, NodeStatus.CANCELLED})

NODE_TRANSITIONS: Mapping[NodeStatus, frozenset[NodeStatus]] = {
    NodeStatus.QUEUED: frozenset({NodeStatus.RUNNING, NodeStatus.WAITING, NodeStatus.SKIPPED})
    | _NODE_ENDS,
    NodeStatus.RUNNING: frozenset({NodeStatus.WAITING}) | _NODE_ENDS,
    NodeStatus.WAITING: frozenset({NodeStatus.RUNNING}) | _NODE_ENDS,
    NodeStatus.SUCCEEDED: frozenset(),
    NodeStatus.FAILED: frozenset(),
    NodeStatus.SKIPPED: frozenset(),
    NodeStatus.CANCELLED: frozenset(),
}

RUN_LIFECYCLE = Lifecycle(RUN_TRANSITIONS)
OPEN_RUN = RUN_LIFECYCLE.open
"""The states a run can still leave."""
ENDED_RUN = tuple(status for status in RunStatus if status not in OPEN_RUN)

ACTIVE_RUN = (RunStatus.RUNNING, RunStatus.WAITING)
"""The states in which nodes may start and the end may be written."""

OPEN_NODE = tuple(status for status, following in NODE_TRANSITIONS.items() if following)


def sources_of(target: RunStatus) -> tuple[RunStatus, ...]:
    """The states from which a run may become `target`: the guard of the conditional update."""
    return RUN_LIFECYCLE.sources_of(target)


MAX_REPLAYS = 20
"""Runs behind a replay of replays whose outputs it can still reuse."""

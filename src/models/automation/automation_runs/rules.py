"""States of runs and node runs, the moves between them, their errors, and types of their rows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from models.core.base import Id, JsonObject
from models.core.lifecycle.rules import Lifecycle
from runtime.errors import PlatformError, RunError


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
    """True for a run that is a test, or a retry of one: mocks apply, and no one is notified."""
    return source == RunSource.TEST or bool(options.get("test"))


_RUN_ENDS = frozenset({RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.TIMED_OUT})

RUN_TRANSITIONS: Mapping[RunStatus, frozenset[RunStatus]] = {
    # A run that never started can fail: its workflow may end before its first transaction. One
    # whose nodes only compute may begin and succeed in one write (ADR 0154).
    RunStatus.QUEUED: frozenset({RunStatus.RUNNING, RunStatus.SUCCEEDED}) | _RUN_ENDS,
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


class RunStatusRow(Protocol):
    """A run and its status."""

    id: Id
    workspace_id: Id
    status: str


class AcceptedRow(RunStatusRow, Protocol):
    """A run with its status and the time it was accepted."""

    created_at: datetime


class RunRow(AcceptedRow, Protocol):
    """The columns of a run that an answer is made of."""

    automation_id: Id
    graph_checksum: str
    source: str
    options: JsonObject

    @property
    def chain(self) -> Sequence[Id]: ...

    parent_run_id: Id | None
    replay_of_run_id: Id | None
    concurrency_key: str | None
    admitted_at: datetime | None


class WholeRun(RunRow, Protocol):
    """A run with what it was given and what came of it."""

    automation_version_id: Id
    started_at: datetime | None
    completed_at: datetime | None
    trigger_payload: JsonObject
    output: JsonObject | None
    error: str | None


class RetriedRun(RunStatusRow, Protocol):
    """The columns of a run that a retry takes over."""

    automation_id: Id
    automation_version_id: Id
    graph_checksum: str
    source: str
    trigger_payload: JsonObject
    options: JsonObject
    attributes: dict[str, str] | None
    start_node_id: str | None
    created_at: datetime


class HeldRun(RunRow, Protocol):
    """A run whose row the transaction has locked."""

    created_by_user_id: Id | None


class EndedRun(RunStatusRow, Protocol):
    """A run that has just ended: the columns `execution.ENDED_COLUMNS`."""

    automation_id: Id
    source: str
    error: str | None
    options: JsonObject

    @property
    def chain(self) -> Sequence[Id]: ...

    concurrency_key: str | None


class ExecutedNode(Protocol):
    """A node of a run as comparisons read it; equal digests are equal JSON values."""

    node_id: str
    scope_key: str
    node_kind: str
    status: str
    outcome: str | None
    case_key: str | None
    attempt: int
    error: str | None
    started_at: datetime | None
    completed_at: datetime | None
    reused: bool
    input_digest: int | None
    output_digest: int | None


class RunClosedError(PlatformError):
    """The run has ended or was cancelled: no node starts and nothing more is written."""

    tag = "ApiConflict"
    code = "run_closed"
    status = 409

    def __init__(self) -> None:
        super().__init__("The run has ended; its remaining nodes won't run.")


class NodeWrittenError(PlatformError):
    """Another execution of a node has written it since this transaction passed the gate.

    It is expected where two workers hold the same run, one of them without knowing of the other.
    """

    retryable = True

    tag = "ApiConflict"
    code = "node_written"
    status = 409

    def __init__(self) -> None:
        super().__init__("Another execution of the node has already written it.")


class NodeError(PlatformError):
    """A node failed for a reason its author can act on; `code` tells the classes apart.

    `retryable` failures are tried again as the node's `retry` allows; `retry_after` seconds,
    when given, is what the other side asked for. `quoted` is what it said: it follows the message
    unless a secret was sent. `output` is what the node shows and what others read of it, as far as
    it came.
    """

    tag = "ApiRunError"
    status = 409

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        quoted: str = "",
        output: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.quoted = quoted
        self.output = output
        self.failure_code = code
        self.retryable = retryable
        self.retry_after = retry_after


class SlotsTakenError(RunError):
    """All slots are taken, and the automation skips further runs (interface.md#concurrency).

    `slot` is the one that the run did not get.
    """

    def __init__(self, slot: JsonObject) -> None:
        self.slot = slot
        super().__init__(
            "The automation has reached its concurrency limit and skips further runs. Try again"
            " when a run has ended."
        )


class WaitsForItselfError(RunError):
    """The run would wait for a slot, but the runs that wait for it hold all slots."""

    def __init__(self) -> None:
        super().__init__(
            "Deadlock: the runs that led to this run hold the slots it needs. Raise the"
            " automation's concurrency limit, or call it without waiting."
        )


class DisplacesCallerError(RunError):
    """The run would displace a run that waits for it, and be cancelled with it."""

    def __init__(self) -> None:
        super().__init__(
            "The run would replace the run that calls it. Raise the automation's concurrency limit,"
            " or call it without waiting."
        )


class ConcurrencyKeyError(RunError):
    """The key expression of an automation cannot be evaluated on the payload."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The automation's concurrency key is invalid: {reason}")

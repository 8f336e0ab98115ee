"""Types of the rows of runs, for statements that select a part of them or more than them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from models.core.base import Id, JsonObject


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


class HeldRun(RunRow, Protocol):
    """A run whose row the transaction has locked."""

    created_by_user_id: Id | None


class EndedRun(RunStatusRow, Protocol):
    """A run that has just ended: the columns `end_effects.ENDED`."""

    automation_id: Id
    source: str
    error: str | None
    options: JsonObject

    @property
    def chain(self) -> Sequence[Id]: ...

    concurrency_key: str | None


class ExecutedNode(Protocol):
    """A node of a run as comparisons read it; equal digests are equal JSON values."""

    @property
    def node_id(self) -> str: ...
    @property
    def scope_key(self) -> str: ...
    @property
    def node_kind(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def outcome(self) -> str | None: ...
    @property
    def case_key(self) -> str | None: ...
    @property
    def attempt(self) -> int: ...
    @property
    def error(self) -> str | None: ...
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def completed_at(self) -> datetime | None: ...
    @property
    def reused(self) -> bool: ...
    @property
    def input_digest(self) -> int | None: ...
    @property
    def output_digest(self) -> int | None: ...

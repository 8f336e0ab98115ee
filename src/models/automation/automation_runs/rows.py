"""Types of the rows of runs, for statements that select a part of them or more than them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from models.core.base import Id, JsonObject


class RunStatusRow(Protocol):
    """A run and its status."""

    @property
    def id(self) -> Id: ...
    @property
    def workspace_id(self) -> Id: ...
    @property
    def status(self) -> str: ...


class AcceptedRow(RunStatusRow, Protocol):
    """A run with its status and the time it was accepted."""

    @property
    def created_at(self) -> datetime: ...


class RunRow(AcceptedRow, Protocol):
    """The columns of a run that an answer is made of."""

    @property
    def automation_id(self) -> Id: ...
    @property
    def graph_checksum(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def options(self) -> JsonObject: ...
    @property
    def chain(self) -> Sequence[Id]: ...
    @property
    def parent_run_id(self) -> Id | None: ...
    @property
    def replay_of_run_id(self) -> Id | None: ...
    @property
    def concurrency_key(self) -> str | None: ...
    @property
    def admitted_at(self) -> datetime | None: ...


class RetriedRun(RunStatusRow, Protocol):
    """The columns of a run that a retry takes over."""

    @property
    def automation_id(self) -> Id: ...
    @property
    def automation_version_id(self) -> Id: ...
    @property
    def graph_checksum(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def trigger_payload(self) -> JsonObject: ...
    @property
    def options(self) -> JsonObject: ...
    @property
    def start_node_id(self) -> str | None: ...


class HeldRun(RunRow, Protocol):
    """A run whose row the transaction has locked."""

    @property
    def created_by_user_id(self) -> Id | None: ...


class EndedRun(RunStatusRow, Protocol):
    """A run that has just ended: the columns `end_effects.ENDED`."""

    @property
    def automation_id(self) -> Id: ...
    @property
    def source(self) -> str: ...
    @property
    def error(self) -> str | None: ...
    @property
    def options(self) -> JsonObject: ...
    @property
    def chain(self) -> Sequence[Id]: ...
    @property
    def concurrency_key(self) -> str | None: ...

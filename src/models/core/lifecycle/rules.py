"""The states of durable work and the moves between them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

REPORTED_FAILURES = frozenset({"failed", "timed_out", "rollback_failed"})
"""The final states that an execution reports as a failure of that type (ADR 0020)."""

Status = TypeVar("Status", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Lifecycle(Generic[Status]):
    """`moves` maps every state to the states that may follow it; work begins in the first one.

    Work that is `at_rest` has ended, although a member may continue it.
    """

    moves: Mapping[Status, frozenset[Status]]
    at_rest: frozenset[Status] = frozenset()

    @property
    def initial(self) -> Status:
        return next(iter(self.moves))

    @property
    def open(self) -> tuple[Status, ...]:
        """The states that work leaves by itself, or with a decision that it waits for."""
        return tuple(
            status
            for status, following in self.moves.items()
            if following and status not in self.at_rest
        )

    def sources_of(self, target: Status) -> tuple[Status, ...]:
        """The states from which work may become `target`: the guard of the conditional update."""
        return tuple(status for status, following in self.moves.items() if target in following)

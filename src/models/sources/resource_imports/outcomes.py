"""Outcomes of an import for a resource, and for what is in it."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of an import for one resource."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"
    """People changed what it was imported into, moved it out of reach, or deleted it."""


@dataclass(frozen=True, slots=True)
class PartCounts:
    """Counts of the rows of a table, or of the blocks of a page, by what became of them.

    `kept` are rows or blocks of people, where the source now says otherwise.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: int = 0

    @property
    def outcome(self) -> Outcome:
        """The outcome for the whole."""
        if self.created or self.updated or self.removed:
            return Outcome.UPDATED
        return Outcome.KEPT if self.kept else Outcome.UNCHANGED

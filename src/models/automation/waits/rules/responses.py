"""What somebody said to a waiting node, and how a wait ends."""

from dataclasses import dataclass, replace

from models.core.base import JsonObject


@dataclass(frozen=True, slots=True)
class Said:
    """One decision, or one piece of data; nobody's `user_id` is who came with a URL."""

    user_id: str | None
    at: str
    decision: str | None = None
    comment: str | None = None
    data: JsonObject | None = None
    event_id: str | None = None
    """The event that brought the data."""

    @property
    def by_url(self) -> bool:
        """Whether it came with a URL."""
        return self.user_id is None and self.event_id is None

    def repeats(self, other: "Said") -> bool:
        """Whether this is the same said once more."""
        return replace(self, at=other.at, event_id=other.event_id) == other


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a wait ends: the outcome that edges are followed by, and the node's output."""

    outcome: str
    output: JsonObject

"""Responses to a waiting node, and the resolution that ends its wait."""

from dataclasses import dataclass, replace

from models.core.base import JsonObject


@dataclass(frozen=True, slots=True)
class Response:
    """One decision, or one piece of data. Who used a resume URL has no `user_id`."""

    user_id: str | None
    at: str
    decision: str | None = None
    comment: str | None = None
    data: JsonObject | None = None
    event_id: str | None = None
    """The event that brought the data."""

    @property
    def by_url(self) -> bool:
        """True when it came by a resume URL."""
        return self.user_id is None and self.event_id is None

    def repeats(self, response: "Response") -> bool:
        """True when this is the other response sent again."""
        return replace(self, at=response.at, event_id=response.event_id) == response


@dataclass(frozen=True, slots=True)
class Resolution:
    """The end of a wait: the outcome that edges are followed by, and the node's output."""

    outcome: str
    output: JsonObject

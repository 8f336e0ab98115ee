"""A call to a webhook, as it arrived."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.content_types import ContentType


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call; header names are in lower case, header values text of bytes (ISO 8859-1)."""

    method: str
    headers: Sequence[tuple[str, str]]
    query: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header; None when it is absent, or when several contradict each other."""
        values = [value for known, value in self.headers if known == name.lower()]
        return values[0] if len(values) == 1 else None

    @property
    def content_type(self) -> ContentType:
        """The type the body is said to have."""
        return ContentType.parse(self.header("content-type") or "")

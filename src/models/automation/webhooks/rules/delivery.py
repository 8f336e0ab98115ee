"""A call to a webhook, as it arrived."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s";]{1,40})', re.IGNORECASE)


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
    def media_type(self) -> str:
        """The type the body is said to have, in lower case and without parameters."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset the body is said to be in, in lower case."""
        found = _CHARSET.search(self.header("content-type") or "")
        return found and found[1].lower()

"""The request a caller describes and the response it gets back."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from urllib.parse import urlsplit

from pydantic import JsonValue

from runtime.clock import utc_now
from runtime.content_types import ContentType, as_text_or_base64
from runtime.outbound.errors import InvalidBodyError
from runtime.strict_json import read_float

MEBIBYTE = 1024 * 1024

_RETRYABLE_CLIENT_ERRORS = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundRequest:
    """One call. `query` is merged into the URL's own; `timeout_seconds` covers all hops together.

    `body`: bytes are sent as they are, None is no body, anything else is sent as JSON, unless the
    content type among the headers says otherwise: then text is sent as it is, and the fields of an
    object as a form if it says so.

    Without `follow_redirects` a redirect is the answer. With `cut_body` a body that is larger than
    `max_bytes` is left where it is, and is no failure.
    """

    method: str = "GET"
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    body: Any = None
    timeout_seconds: float = 30
    max_bytes: int = 10 * MEBIBYTE
    follow_redirects: bool = True
    cut_body: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundResponse:
    """A complete answer. Header names are lower case; `bytes_received` counts the body on the wire.

    `final_url` may carry secrets in its query: show `redacted_url(final_url)` to people.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    bytes_received: int
    final_url: str

    @property
    def host(self) -> str:
        """The host that answered."""
        return urlsplit(self.final_url).hostname or ""

    @property
    def retryable(self) -> bool:
        """True when the same request may be answered otherwise later: 4xx but a few is final."""
        return self.status >= 500 or self.status in _RETRYABLE_CLIENT_ERRORS

    @property
    def retry_after(self) -> float | None:
        """Seconds that the answer asks to wait, by a number or a date (RFC 9110, 10.2.3)."""
        value = self.headers.get("retry-after")
        if value is None:
            return None
        if value.isascii() and value.isdigit():
            # A number that no clock reaches says nothing: it must not hold back a whole workspace.
            return seconds if math.isfinite(seconds := float(value)) else None
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)  # all HTTP dates are in UTC, whatever they write
        return max(0.0, (moment - utc_now()).total_seconds())

    @property
    def content_type(self) -> ContentType:
        """The type of the body; its media type is empty when the answer names none."""
        return ContentType.parse(self.headers.get("content-type", ""))

    def text(self, media_type: str | None = None) -> str | None:
        """The body as text, of this type whatever it says it is; None when it is no text."""
        return self._read_as(media_type or self.content_type.media_type).decode(self.body)

    def shown_text(self, media_type: str) -> str | None:
        """The body as `text` has it, in which a NUL is shown as U+FFFD."""
        text = self._read_as(media_type).decode(self.body, with_nul=True)
        return text and text.replace("\x00", "\ufffd")

    def _read_as(self, media_type: str) -> ContentType:
        return replace(self.content_type, media_type=media_type)

    def content(self) -> tuple[JsonValue, str | None]:
        """The body as a JSON value, and how it was read: `json`, `text` or `base64`, by its type.

        Both are None when it is empty. Raises InvalidBodyError as `parsed` does.
        """
        if not self.body:
            return None, None
        if self.content_type.is_json:
            return self.parsed(), "json"
        return as_text_or_base64(self.content_type, self.body)

    def json(self) -> JsonValue:
        """The value that `content` gives."""
        return self.content()[0]

    def parsed(self) -> JsonValue:
        """The value of a body that is JSON, whatever type it says it is; None when it is empty.

        Raises InvalidBodyError when it is not JSON (RFC 8259: no NaN), or nests too deep to read.
        """
        if not self.body:
            return None
        text = self.text("application/json") or ""
        try:
            value: JsonValue = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError):
            raise InvalidBodyError(
                f"The answer says it is {self.content_type.media_type}, but its body is not valid"
                " JSON."
            ) from None
        return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite(text: str) -> int | float:
    number = read_float(text)
    if abs(number) == math.inf:
        raise ValueError(text)
    return number

"""The request a caller describes and the response it gets back."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.outbound.errors import InvalidBodyError

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundRequest:
    """One call. `query` is merged into the URL's own; `timeout_seconds` covers all hops together.

    `body`: bytes are sent as they are, None is no body, anything else is sent as JSON, unless the
    content type among the headers says otherwise: then text is sent as it is, and the fields of an
    object as a form if it says so.
    """

    method: str = "GET"
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    body: Any = None
    timeout_seconds: float = 30
    max_bytes: int = 10 * MEBIBYTE


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
    def content_type(self) -> str:
        """The media type without parameters, lower case, empty when the answer names none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_json(self) -> bool:
        return self.content_type == "application/json" or self.content_type.endswith("+json")

    def text(self) -> str:
        """The body in the charset it declares, else UTF-8; what does not decode is replaced."""
        charset = "utf-8"
        for parameter in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                charset = value.strip().strip("\"'")
        try:
            return self.body.decode(charset, errors="replace")
        except (LookupError, UnicodeError):
            return self.body.decode("utf-8", errors="replace")

    def json(self) -> Any:
        """The body as a JSON value: parsed when its type is JSON, text otherwise, None when empty.

        Raises InvalidBodyError when the type is JSON and the body is not (RFC 8259: no NaN), or
        nests too deep to read.
        """
        if not self.body:
            return None
        if not self.is_json:
            return self.text()
        try:
            return json.loads(self.body, parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError):
            raise InvalidBodyError(
                f"The answer says it is {self.content_type}, but its body is not valid JSON."
            ) from None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number

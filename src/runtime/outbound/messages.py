"""The request a caller describes, the hops it becomes, and the response it gets back.

The body of a response is counted on the wire, decoded, and bounded while it arrives.
"""

import base64
import json
import math
import re
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from itertools import takewhile
from typing import Any, Literal, NoReturn, TypeAlias
from urllib.parse import urlencode, urlsplit

import httpcore2
import httpx2
from pydantic import JsonValue

from runtime.clock import utc_now
from runtime.content_types import ContentType, as_text_or_base64
from runtime.outbound import errors
from runtime.outbound_policy import NO_HOST, UNREADABLE, is_host, target_problem, url_problem
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
            moment = moment.replace(tzinfo=UTC)  # all HTTP dates are in UTC, even with another zone
        return max(0.0, (moment - utc_now()).total_seconds())

    @property
    def content_type(self) -> ContentType:
        """The type of the body; its media type is empty when the answer names none."""
        return ContentType.parse(self.headers.get("content-type", ""))

    def text(self, media_type: str | None = None) -> str | None:
        """The body as text of this type, regardless of the stated one; None when it is not text."""
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
        """The value of a body as JSON, regardless of its content type; None when it is empty.

        Raises InvalidBodyError when it is not JSON (RFC 8259: no NaN), or nests too deep to read.
        """
        if not self.body:
            return None
        text = self.text("application/json") or ""
        try:
            value: JsonValue = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError):
            raise errors.InvalidBodyError(
                f"The response has the type {self.content_type.media_type}, but is not valid JSON."
            ) from None
        return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite(text: str) -> int | float:
    number = read_float(text)
    if abs(number) == math.inf:
        raise ValueError(text)
    return number


AuthScheme = Literal["none", "bearer", "basic", "header"]


def authentication(
    scheme: AuthScheme, credential: str, header_name: str | None = None
) -> dict[str, str]:
    """The header with a credential: a token, `user:password` for basic (RFC 7617), or a value."""
    match scheme:
        case "none":
            return {}
        case "bearer":
            return {"Authorization": f"Bearer {credential}"}
        case "basic":
            encoded = base64.b64encode(credential.encode()).decode()
            return {"Authorization": f"Basic {encoded}"}
        case _:
            assert header_name is not None, "the config names the header"
            return {header_name: credential}


MAX_LENGTH = 8192


def parse_url(text: str, query: Mapping[str, str | Sequence[str]] | None = None) -> httpx2.URL:
    """The URL to call, with `query` merged in and without its fragment. Raises InvalidUrlError."""
    if len(text) > MAX_LENGTH:
        raise errors.InvalidUrlError(f"The URL is longer than {MAX_LENGTH} characters.")
    problem = url_problem(text.strip())
    if problem is not None:
        raise errors.InvalidUrlError(problem)
    try:
        url = httpx2.URL(text.strip())
        if query:
            url = url.copy_merge_params({name: _values(value) for name, value in query.items()})
    except (httpx2.InvalidURL, UnicodeError):
        raise errors.InvalidUrlError(UNREADABLE) from None
    check_url(url)
    return url.copy_with(fragment=None)


def check_host(host: str) -> None:
    """Refuse what can be no host. Raises InvalidUrlError."""
    if not is_host(host):
        raise errors.InvalidUrlError(NO_HOST)


def _values(value: str | Sequence[str]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


def check_url(url: httpx2.URL) -> None:
    """Refuse a URL that must not be called, regardless of the addresses of its host. Raises
    InvalidUrlError.
    """
    problem = target_problem(
        url.scheme, url.raw_host.decode("ascii"), url.port, has_user=bool(url.userinfo)
    )
    if problem is not None:
        raise errors.InvalidUrlError(problem)


def same_origin(url: httpx2.URL, target: httpx2.URL) -> bool:
    """True when both name the same scheme, host and port."""
    return _origin(url) == _origin(target)


def is_https_upgrade(url: httpx2.URL, target: httpx2.URL) -> bool:
    """True when `target` is the host of `url` on HTTPS, not HTTP, both on default ports."""
    return _origin(url) == ("http", url.host, 80) and _origin(target) == ("https", url.host, 443)


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


USER_AGENT = "workspace-platform/0.0.1"
MAX_HEADER_BYTES = 32 * 1024
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

# Framing and routing belong to the client: a caller who sets them can smuggle a second request.
_RESERVED = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


@dataclass(frozen=True, slots=True)
class Hop:
    """One request on the way: where, how, with which headers and body."""

    method: str
    url: httpx2.URL
    headers: dict[str, str]
    content: bytes | None


def first_hop(request: OutboundRequest) -> Hop:
    """The first request to send. Raises InvalidUrlError and InvalidRequestError."""
    method = request.method.upper()
    if method not in _METHODS:
        raise errors.InvalidRequestError(
            f"The method must be one of {', '.join(sorted(_METHODS))}."
        )
    headers = _headers(request)
    content, content_type = _content(request.body, headers.get("content-type"))
    if content_type is not None:
        headers.setdefault("content-type", content_type)
    headers.setdefault("accept", "*/*")
    # Those whose decoding httpx2 bounds without further packages.
    headers.setdefault("accept-encoding", "gzip, deflate")
    headers.setdefault("user-agent", USER_AGENT)
    return Hop(method, parse_url(request.url, request.query), headers, content)


def _headers(request: OutboundRequest) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        lower = name.lower()
        if not _TOKEN.fullmatch(lower) or lower in _RESERVED:
            raise errors.InvalidRequestError(f"The header {name!r} cannot be set.")
        if not _VALUE.fullmatch(value):
            raise errors.InvalidRequestError(f"The header {name!r} has an invalid character.")
        headers[lower] = value.strip()
    if sum(len(name) + len(value) for name, value in headers.items()) > MAX_HEADER_BYTES:
        raise errors.InvalidRequestError(f"The headers are larger than {MAX_HEADER_BYTES} bytes.")
    return headers


def _content(body: object, declared: str | None) -> tuple[bytes | None, str | None]:
    if body is None or isinstance(body, bytes):
        return body, None
    content_type = ContentType.parse(declared or JSON)
    charset = content_type.charset or "utf-8"
    if content_type.media_type.startswith("multipart/") and not isinstance(body, str):
        raise errors.InvalidRequestError("A multipart body must be text, with its boundaries.")
    try:
        if isinstance(body, dict) and content_type.media_type == FORM:
            return urlencode(_fields(body), doseq=True, encoding=charset).encode(), None
        if isinstance(body, str) and not content_type.is_json:
            return body.encode(charset), None
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode(), JSON
    except (TypeError, ValueError, RecursionError):
        kind = (
            content_type.media_type
            if charset == "utf-8"
            else f"{content_type.media_type} in {charset}"
        )
        raise errors.InvalidRequestError(f"The body can't be encoded as {kind}.") from None


def _fields(body: dict[str, Any]) -> dict[str, Any]:
    """The fields of a form: nulls are left out, a list is a field that comes several times."""
    return {name: _field(value) for name, value in body.items() if value is not None}


def _field(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return [_field(item) for item in value if item is not None]
    if isinstance(value, dict):
        raise TypeError
    return value


_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# Another origin gets only headers known to hold no secret: any other may be someone's credential.
_CARRIED = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "content-encoding",
        "content-language",
        "content-type",
        "idempotency-key",
        "if-modified-since",
        "if-none-match",
        "range",
        "user-agent",
    }
)


def next_hop(hop: Hop, status: int, location: str | None) -> Hop | None:
    """The request a redirect asks for, or None when the answer is final. Raises InvalidUrlError."""
    if status not in _REDIRECTS or location is None:
        return None
    try:
        url = hop.url.join(location).copy_with(fragment=None)
    except (httpx2.InvalidURL, UnicodeError):
        raise errors.InvalidUrlError(f"{hop.url.host} redirects to an invalid URL.") from None
    try:
        check_url(url)
    except errors.InvalidUrlError as error:
        message = f"{hop.url.host} redirects to a URL that can't be called. {error.message}"
        raise errors.InvalidUrlError(message) from None
    headers = dict(hop.headers)
    if not (same_origin(hop.url, url) or is_https_upgrade(hop.url, url)):
        headers = {name: value for name, value in headers.items() if name in _CARRIED}
    if _becomes_get(hop.method, status):
        headers = {
            name: value for name, value in headers.items() if not name.startswith("content-")
        }
        return Hop("GET", url, headers, None)
    return Hop(hop.method, url, headers, hop.content)


def _becomes_get(method: str, status: int) -> bool:
    return (status == 303 and method != "HEAD") or (status in {301, 302} and method == "POST")


Sink: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Takes the chunks of a body."""

_CODING_OVERHEAD = 64 * 1024
"""Bytes that framing may add to a body that does not compress."""
_PIECE = 1024 * 1024
"""Bytes that are inflated at once, so that few do not become a buffer without bounds."""
_MOST_CODINGS = 5
_GZIP = frozenset({"gzip", "x-gzip"})
_HEADER = b"content-encoding"
_CODINGS = _GZIP | {"deflate"}
_OTHER_CODINGS = frozenset(
    {"br", "zstd", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"}
)
"""Codings that we neither ask for nor undo (IANA); other words are no codings, as in `utf-8`."""
_GZIP_WINDOW, _RAW_WINDOW = zlib.MAX_WBITS | 16, -zlib.MAX_WBITS


class Inflater:
    """Decodes gzip of any number of members (RFC 1952), or deflate, with its head or without.

    Raises zlib.error.
    """

    def __init__(self, coding: str) -> None:
        self._is_gzip = coding in _GZIP
        self._window = _GZIP_WINDOW if self._is_gzip else zlib.MAX_WBITS
        self._inflate = zlib.decompressobj(self._window)
        self._begun = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Decode a chunk; bytes behind the end are not a part of the body."""
        while chunk:
            if self._inflate.eof:
                if not self._is_gzip or chunk[0] != 0x1F:
                    return
                self._inflate = zlib.decompressobj(self._window)
            yield self._first(chunk) if not self._begun else self._inflate.decompress(chunk, _PIECE)
            chunk = self._inflate.unconsumed_tail or self._inflate.unused_data

    def _first(self, chunk: bytes) -> bytes:
        self._begun = True
        try:
            return self._inflate.decompress(chunk, _PIECE)
        except zlib.error:
            if self._is_gzip:
                raise
            self._inflate = zlib.decompressobj(_RAW_WINDOW)
            return self._inflate.decompress(chunk, _PIECE)

    def end(self) -> Iterator[bytes]:
        """Decode the rest behind the last chunk. Raises zlib.error for content that broke off."""
        if self._begun and not self._inflate.eof:
            yield self._inflate.flush()
            if not self._inflate.eof:
                raise zlib.error("the content broke off")


def _through(chunk: bytes, inflaters: Sequence[Inflater]) -> Iterator[bytes]:
    if not inflaters:
        yield chunk
        return
    for piece in inflaters[0].pieces(chunk):
        yield from _through(piece, inflaters[1:])


def _rest(inflaters: Sequence[Inflater]) -> Iterator[bytes]:
    for place, inflater in enumerate(inflaters, start=1):
        for piece in inflater.end():
            yield from _through(piece, inflaters[place:])


def _codings(response: httpcore2.Response) -> Sequence[str]:
    """The codings to undo, the last one first, up to a word that is none."""
    named = b",".join(value for name, value in response.headers if name.lower() == _HEADER)
    codings = [coding.strip().lower() for coding in named.decode("latin-1").split(",")]
    plain = [coding for coding in reversed(codings) if coding not in {"", "identity"}]
    return [*takewhile((_CODINGS | _OTHER_CODINGS).__contains__, plain)]


class _Counted:
    """A body whose bytes are counted, and that stops at a cap before anything is decoded."""

    def __init__(self, response: httpcore2.Response, host: str, limit: int) -> None:
        self._response, self.host, self._limit = response, host, limit
        self.received = 0

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._response.aiter_stream()) as chunks:
            async for chunk in chunks:
                self.received += len(chunk)
                if self.received > self._limit + _CODING_OVERHEAD:
                    raise errors.ResponseTooLargeError(self.host, "body", self._limit)
                yield chunk


async def read_body(response: httpcore2.Response, host: str, limit: int, sink: Sink) -> int:
    """Give the decoded body to `sink`, chunk by chunk; the bytes it had on the wire.

    Decoding is bounded: little is inflated at a time, and the sum is checked each time. Content of
    a coding that breaks off is no whole body. Raises ResponseTooLargeError, InvalidResponseError
    and httpcore2's errors.
    """
    wire, size = _Counted(response, host, limit), 0
    try:
        async with aclosing(_decoded(response, wire)) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > limit:
                    raise errors.ResponseTooLargeError(host, "body", limit)
                if piece:
                    await sink(piece)
    except zlib.error:
        raise errors.InvalidResponseError(host) from None
    return wire.received


async def _decoded(response: httpcore2.Response, wire: _Counted) -> AsyncGenerator[bytes, None]:
    codings = _codings(response)
    if len(codings) > _MOST_CODINGS:
        raise zlib.error("too many codings")
    foreign = next(filter(_OTHER_CODINGS.__contains__, codings), None)
    inflaters = [Inflater(coding) for coding in codings]
    async with aclosing(wire.chunks()) as chunks:
        async for chunk in chunks:
            if foreign is not None:
                raise errors.UnknownCodingError(wire.host, foreign)
            for piece in _through(chunk, inflaters):
                yield piece
    for piece in _rest(inflaters):
        yield piece

"""Answers that are bytes: prepared ones and stored files, conditional and in ranges (RFC 9110)."""

import gzip
import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, TypeVar
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from api.kernel.request import ApiRequest
from models.content.files.rules import Content
from runtime.errors import PlatformError

_LONGEST_HEADER = 1000


def is_current(request: ApiRequest, etag: str) -> bool:
    """True when `If-None-Match` names this entity tag, by weak comparison."""
    given = b",".join(request.headers_named(b"if-none-match"))[:_LONGEST_HEADER].decode("latin-1")
    tags = {one.strip().removeprefix("W/") for one in given.split(",")}
    return bool(tags & {"*", etag})


_REFUSED = re.compile(r"gzip\s*;\s*q=0(\.0*)?\s*$")


@dataclass(slots=True)
class Prepared:
    """The bytes of an answer; a client asks with its entity tag whether they are still the same."""

    content: bytes
    etag: str
    headers: Mapping[str, str]
    status: int = 200
    _compressed: bytes | None = None

    @classmethod
    def of(
        cls, content: bytes, media_type: str, headers: Mapping[str, str], status: int = 200
    ) -> "Prepared":
        """Compute the entity tag of the content."""
        digest = hashlib.sha256(content).hexdigest()[:32]
        fixed = {
            "Cache-Control": "no-cache",
            **headers,
            "Content-Type": media_type,
            "Vary": "Accept-Encoding",
        }
        return cls(content, digest, fixed, status)

    @property
    def compressed(self) -> bytes:
        """The content as gzip, for the first who asks: most of many pages are never read."""
        if self._compressed is None:
            self._compressed = gzip.compress(self.content, 6, mtime=0)
        return self._compressed

    def answer(self, request: ApiRequest) -> Response:
        """The answer in the coding the client takes, or 304 when it has it already.

        The two codings differ in bytes, and so in their tags (RFC 9110, 8.8.3.3).
        """
        zipped = _takes_gzip(request)
        etag = f'"{self.etag}-gzip"' if zipped else f'"{self.etag}"'
        headers = {**self.headers, "ETag": etag}
        if self.status == _OK and is_current(request, etag):
            return Response(status_code=304, headers=headers)
        if zipped:
            headers["Content-Encoding"] = "gzip"
        content = self.compressed if zipped else self.content
        return Response(content, self.status, headers=headers)


_OK = 200


def _takes_gzip(request: ApiRequest) -> bool:
    codings = b",".join(request.headers_named(b"accept-encoding")).decode("latin-1").lower()
    named = [one.strip() for one in codings.split(",") if one.strip().startswith("gzip")]
    return any(not _REFUSED.fullmatch(one) for one in named)


T = TypeVar("T")

_RANGE = re.compile(rb"bytes[ \t]*=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.IGNORECASE)

_SAFE = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "private, no-cache",
    "Accept-Ranges": "bytes",
}
"""A file is an upload: no browser may run it as a page of this origin."""


@dataclass(frozen=True, slots=True)
class _Range:
    """Bytes from `start` up to but not including `end`."""

    start: int
    end: int


class RangeNotSatisfiableError(PlatformError):
    tag = "ApiRangeNotSatisfiable"
    code = "range_not_satisfiable"
    status = 416
    headers: ClassVar[dict[str, str]] = {"Content-Range": "bytes */*"}

    def __init__(self, size: int) -> None:
        super().__init__(f"The range is outside the file, which has {size} bytes.")
        self.headers = {"Content-Range": f"bytes */{size}"}  # type: ignore[misc]


def download(request: ApiRequest, content: Content) -> Response:
    """Answer a GET or HEAD with 200, 304, or 206 for a range. Raises RangeNotSatisfiableError.

    The routers of files and share links call it. The bytes are read from the object store after the
    transaction has ended.
    """
    etag = f'"{content.sha256.hex()}"'
    headers = {**_SAFE, "ETag": etag, "Content-Disposition": _disposition(content.name)}
    if is_current(request, etag):
        return Response(status_code=304, headers=headers)
    span, status = _requested_range(request, content.byte_size, etag), 200
    if span is not None and span.start >= content.byte_size:
        raise RangeNotSatisfiableError(content.byte_size)
    if span is None:
        span = _Range(0, content.byte_size)
    else:
        headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{content.byte_size}"
        status = 206
    headers |= {"Content-Length": str(span.end - span.start), "Content-Type": content.mime_type}
    pieces = request.services.store.get(content.object_key, span.start, span.end)
    return _StoredBytes(pieces, status, headers)


class _StoredBytes(StreamingResponse):
    """Streams from the object store; the status is sent only when the first bytes are there."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pieces = aiter(self.body_iterator)
        self.body_iterator = _chained(await anext(pieces, b""), pieces)
        with suppress(ClientDisconnect):
            await super().__call__(scope, receive, send)


async def _chained(first: T, others: AsyncIterator[T]) -> AsyncIterator[T]:
    yield first
    async for one in others:
        yield one


def _requested_range(request: ApiRequest, size: int, etag: str) -> _Range | None:
    """The range to send; None for the whole file.

    Several ranges, and what is no range, get the whole file (RFC 9110, 14.2), so that the cost of a
    request does not grow with its header.
    """
    values = request.headers_named(b"range")
    if len(values) != 1 or request.method != "GET":
        return None
    matched = _RANGE.fullmatch(values[0][:_LONGEST_HEADER])
    conditions = request.headers_named(b"if-range")
    if matched is None or (conditions and conditions != [etag.encode()]):
        return None
    first, last = matched.groups()
    if not first:
        if not last:
            return None
        # The last N bytes; N = 0 cannot be satisfied.
        return _Range(max(0, size - int(last)), size) if int(last) else _Range(size, size)
    if last and int(last) < int(first):
        return None
    end = min(size, int(last) + 1) if last else size
    return _Range(int(first), end)


def _disposition(name: str) -> str:
    """An attachment with its name in ASCII, and in UTF-8 for clients that read it (RFC 6266)."""
    plain = "".join(c if " " <= c <= "~" and c not in '"\\%' else "_" for c in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"

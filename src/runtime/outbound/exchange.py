"""One request and its answer over a fresh connection: framing, caps and the names of failures."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias

import h11
import httpcore2
import httpx2
from typing_extensions import override

from runtime.outbound.errors import (
    ConnectionFailedError,
    InvalidRequestError,
    InvalidResponseError,
    OutboundError,
    OutboundTimeoutError,
    ResponseTooLargeError,
)
from runtime.outbound.redirects import Hop
from runtime.outbound_policy import OutboundPolicy

_HEADER_FIELDS_TOO_LARGE = 431
# What framing may add to a body that does not compress.
_CODING_OVERHEAD = 64 * 1024


Sink: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Takes the chunks of a body."""


@dataclass(slots=True)
class Progress:
    """The progress of a call: a silent host is told from a slow one only once connected."""

    host: str
    connected: bool = False

    async def trace(self, event: str, _info: object) -> None:
        """An httpcore2 trace hook."""
        if event == "connection.connect_tcp.complete":
            self.connected = True

    def late(self) -> OutboundError:
        """The error of a deadline that passed now."""
        return (OutboundTimeoutError if self.connected else ConnectionFailedError)(self.host)


class CountedStream(httpx2.AsyncByteStream):
    """A body that counts its bytes on the wire and stops at a cap, before anything is decoded."""

    def __init__(self, chunks: AsyncGenerator[bytes, None], host: str, limit: int) -> None:
        self._chunks = chunks
        self._host = host
        self._limit = limit
        self.received = 0

    @override
    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                self.received += len(chunk)
                if self.received > self._limit + _CODING_OVERHEAD:
                    raise ResponseTooLargeError(self._host, "body", self._limit)
                yield chunk


def core_request(hop: Hop, policy: OutboundPolicy, progress: Progress) -> httpcore2.Request:
    """The hop as httpcore2 sends it: our headers, framed by httpx2."""
    # What is beyond ASCII goes as HTTP has always read it (RFC 9110, 5.5).
    headers = httpx2.Headers(hop.headers, encoding="latin-1")
    framed = httpx2.Request(hop.method, hop.url, headers=headers, content=hop.content)
    return httpcore2.Request(
        hop.method,
        httpcore2.URL(
            scheme=hop.url.raw_scheme,
            host=hop.url.raw_host,
            port=hop.url.port,
            target=hop.url.raw_path,
        ),
        headers=framed.headers.raw,
        content=hop.content or b"",
        extensions={
            "timeout": {
                "connect": policy.connect_seconds,
                "read": policy.read_seconds,
                "write": policy.read_seconds,
            },
            "trace": progress.trace,
        },
    )


def check_headers(response: httpcore2.Response, host: str, limit: int) -> None:
    """Raises ResponseTooLargeError when the header block passes `limit` bytes."""
    if sum(len(name) + len(value) for name, value in response.headers) > limit:
        raise ResponseTooLargeError(host, "header block", limit)


async def read_body(response: httpcore2.Response, host: str, limit: int, sink: Sink) -> int:
    """Give the decoded body to `sink`, chunk by chunk; the bytes it had on the wire.

    Decoding is bounded: httpx2 inflates at most 1 MiB at a time, and the sum is checked each time.
    Raises ResponseTooLargeError, InvalidResponseError and httpcore2's errors.
    """
    stream = CountedStream(response.aiter_stream(), host, limit)
    answer = httpx2.Response(response.status, headers=response.headers, stream=stream)
    size = 0
    try:
        async with aclosing(answer.aiter_bytes()) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise ResponseTooLargeError(host, "body", limit)
                await sink(chunk)
    except httpx2.DecodingError:
        raise InvalidResponseError(host) from None
    return stream.received


def failure(error: Exception, progress: Progress, policy: OutboundPolicy) -> OutboundError:
    """Our error for one of httpcore2's; its text stays behind, for it may quote a header."""
    match error:
        case httpcore2.ConnectError() | httpcore2.ConnectTimeout():
            return ConnectionFailedError(progress.host)
        case httpcore2.TimeoutException():
            return progress.late()
        case httpcore2.LocalProtocolError():
            return InvalidRequestError("The request cannot be sent as HTTP.")
        case httpcore2.RemoteProtocolError() if _is_header_overflow(error):
            return ResponseTooLargeError(progress.host, "header block", policy.max_header_bytes)
        case _:
            return InvalidResponseError(progress.host)


def _is_header_overflow(error: Exception) -> bool:
    # httpcore2 keeps h11's exception as its only argument, and cuts the chain of causes.
    causes = [cause for cause in error.args if isinstance(cause, h11.RemoteProtocolError)]
    return any(cause.error_status_hint == _HEADER_FIELDS_TOO_LARGE for cause in causes)

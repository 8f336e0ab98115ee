"""Bodies of answers: counted on the wire, decoded, and bounded while they arrive."""

import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import takewhile
from typing import TypeAlias

import httpcore2

from runtime.outbound.errors import InvalidResponseError, ResponseTooLargeError

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
    """The codings to undo, the last one first, up to one that is not known."""
    named = b",".join(value for name, value in response.headers if name.lower() == _HEADER)
    codings = [coding.strip().lower() for coding in named.decode("latin-1").split(",")]
    plain = [coding for coding in reversed(codings) if coding not in {"", "identity"}]
    return [*takewhile(_CODINGS.__contains__, plain)]


class _Counted:
    """A body whose bytes are counted, and that stops at a cap before anything is decoded."""

    def __init__(self, response: httpcore2.Response, host: str, limit: int) -> None:
        self._response, self._host, self._limit = response, host, limit
        self.received = 0

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._response.aiter_stream()) as chunks:
            async for chunk in chunks:
                self.received += len(chunk)
                if self.received > self._limit + _CODING_OVERHEAD:
                    raise ResponseTooLargeError(self._host, "body", self._limit)
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
                    raise ResponseTooLargeError(host, "body", limit)
                if piece:
                    await sink(piece)
    except zlib.error:
        raise InvalidResponseError(host) from None
    return wire.received


async def _decoded(response: httpcore2.Response, wire: _Counted) -> AsyncGenerator[bytes, None]:
    codings = _codings(response)
    if len(codings) > _MOST_CODINGS:
        raise zlib.error("too many codings")
    inflaters = [Inflater(coding) for coding in codings]
    async with aclosing(wire.chunks()) as chunks:
        async for chunk in chunks:
            for piece in _through(chunk, inflaters):
                yield piece
    for piece in _rest(inflaters):
        yield piece

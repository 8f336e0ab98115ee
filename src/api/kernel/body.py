"""Reads the body of a request: bounded in bytes, and JSON unless the operation takes any.

The pipeline calls it before the transaction opens. What is wrong with a body is kept in `Body` and
told once the caller is known.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope

from runtime import errors

_DISCARDED_BYTES = 32 * 1024 * 1024
_DISCARDING_SECONDS = 2.0
_RELEVANT = frozenset(
    {b"content-length", b"transfer-encoding", b"content-encoding", b"content-type"}
)


class ClientGoneError(Exception):
    """The client closed the connection before it had sent its request, or had its answer."""

    retryable = False


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes, or why they are refused."""

    raw: bytes = b""
    refusal: errors.PlatformError | None = None


NO_BODY = Body()


class PacedReceive:
    """Receives a body whose sender may be `seconds` behind a rate of `rate` bytes a second.

    Only the time that is spent waiting counts. Raises RequestTimeoutError.
    """

    def __init__(self, receive: Receive, rate: float, seconds: float) -> None:
        self._receive = receive
        self._rate = rate
        self._seconds = self._left = seconds

    async def __call__(self) -> Message:
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            async with asyncio.timeout(self._left):
                message = await self._receive()
        except TimeoutError:
            raise errors.RequestTimeoutError(
                f"The body arrived at less than {self._rate:g} bytes per second. Send it again."
            ) from None
        earned = len(message.get("body", b"")) / self._rate
        self._left = min(self._seconds, self._left - (loop.time() - start) + earned)
        return message


async def read_body(scope: Scope, receive: Receive, limit: int, *, raw: bool = False) -> Body:
    """Read at most `limit` bytes, of JSON unless `raw` is set; raises ClientGoneError."""
    headers = _relevant(scope)
    if b"content-length" not in headers and b"transfer-encoding" not in headers:
        return NO_BODY
    if refusal := _refusal(headers, limit):
        await _discard(receive)
        return Body(refusal=refusal)
    if headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers:
        return NO_BODY
    content = await _collect(receive, limit)
    if content is None:
        await _discard(receive)
        return Body(refusal=too_large(limit))
    if content and not raw and not is_json(headers.get(b"content-type", b"")):
        return Body(
            refusal=errors.UnsupportedMediaTypeError(
                "Send the body as JSON, with Content-Type: application/json."
            )
        )
    return Body(content)


def announced_body(scope: Scope, limit: int) -> Body:
    """The refusal that the headers of a body call for; its bytes are read later."""
    return Body(refusal=_refusal(_relevant(scope), limit))


def _relevant(scope: Scope) -> dict[bytes, bytes]:
    return {name: value for name, value in scope["headers"] if name in _RELEVANT}


def _refusal(headers: Mapping[bytes, bytes], limit: int) -> errors.PlatformError | None:
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        return errors.UnsupportedMediaTypeError("Send the body without content encoding.")
    declared = headers.get(b"content-length", b"0")
    if not declared.isdigit() or len(declared) > 18 or int(declared) > limit:
        return too_large(limit)
    return None


async def _collect(receive: Receive, limit: int) -> bytes | None:
    """The whole body; None when it is larger than allowed."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            return None
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _discard(receive: Receive) -> None:
    """Read on after a refusal, for a while.

    Many clients do not read while they send, and would miss the refusal when the connection closes.
    """
    remaining = _DISCARDED_BYTES
    with suppress(TimeoutError, errors.RequestTimeoutError):
        async with asyncio.timeout(_DISCARDING_SECONDS):
            while remaining > 0:
                message = await receive()
                if not message.get("more_body", False):
                    return
                remaining -= len(message["body"])


def is_json(content_type: bytes) -> bool:
    """`application/json`, with no charset but UTF-8 (RFC 8259, 11)."""
    media_type, _, parameters = content_type.lower().partition(b";")
    if media_type.strip() != b"application/json":
        return False
    for parameter in parameters.split(b";"):
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"charset" and value.strip().strip(b'"') != b"utf-8":
            return False
    return True


def too_large(limit: int) -> errors.PayloadTooLargeError:
    """The refusal of a body of more than `limit` bytes."""
    return errors.PayloadTooLargeError(f"The body is larger than {limit // 1024} KiB.")

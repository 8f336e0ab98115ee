"""Answers that are streams of server-sent events (HTML Living Standard, 9.2).

FastAPI encodes the events and Starlette sends them. Here is what they lack: a limit for the
streams of a process, an end of all of them at shutdown, and no transaction while one is open.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from api.kernel.responses import error_response
from runtime.errors import UnavailableError

MOST_STREAMS = 100
"""Streams that one process serves at once."""
KEEPALIVE_SECONDS = 10.0
"""The time a stream may be silent before a comment shows that it is open."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""The second one tells a proxy in front not to buffer events."""


@dataclass(slots=True)
class Streams:
    """The streams this process serves; once `closing`, each ends and its client reconnects."""

    most: int = MOST_STREAMS
    open: int = 0
    closing: bool = False

    def check(self) -> None:
        """Raises UnavailableError when there is no room for another."""
        if self.open >= self.most or self.closing:
            raise UnavailableError("Too many streams are open here; try again soon.")


class EventStream(EventSourceResponse):
    """Sends events as they come; the request's transaction has ended before the first."""

    def __init__(self, streams: Streams, events: AsyncIterator[bytes]) -> None:
        streams.check()
        super().__init__(events, headers=_HEADERS)
        self._streams = streams

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # Other streams may have opened while this request's transaction ended.
            self._streams.check()
        except UnavailableError as error:
            await error_response(error)(scope, receive, send)
            return
        self._streams.open += 1
        try:
            with suppress(ClientDisconnect):
                await super().__call__(scope, receive, send)
        finally:
            self._streams.open -= 1


async def with_keepalive(events: AsyncIterator[bytes | None]) -> AsyncIterator[bytes]:
    """The events, with a comment whenever there was none for a while; None says "nothing new"."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    async for one in events:
        if one is None and loop.time() - last < KEEPALIVE_SECONDS:
            continue
        last = loop.time()
        yield KEEPALIVE_COMMENT if one is None else one

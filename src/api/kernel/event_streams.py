"""Answers that go on: server-sent events (HTML Living Standard, 9.2), few and not for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from api.kernel.responses import error_response
from runtime.errors import UnavailableError

MEDIA_TYPE = "text/event-stream"
MOST = 100
"""Streams that one process serves at once."""
HEARTBEAT_SECONDS = 10.0
"""How long a stream may be silent before a comment shows that it is alive."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""The second one tells a proxy in front not to collect what must arrive at once."""


@dataclass(slots=True)
class Streams:
    """The streams of this process; once `closing`, each ends by itself and clients come back."""

    most: int = MOST
    open: int = 0
    closing: bool = False

    def check(self) -> None:
        """Raises UnavailableError when there is no room for another."""
        if self.open >= self.most or self.closing:
            raise UnavailableError("Too many streams are open here; try again soon.")


class EventStream(StreamingResponse):
    """Sends events as they come; the request's transaction has ended before the first."""

    def __init__(self, streams: Streams, events: AsyncIterator[bytes]) -> None:
        streams.check()
        super().__init__(events, headers=_HEADERS, media_type=MEDIA_TYPE)
        self._streams = streams

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # Others may have come in while this request's transaction ended.
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


def event(name: str, data: str = "{}") -> bytes:
    """One event; `data` is one line of JSON."""
    return f"event: {name}\ndata: {data}\n\n".encode()


async def alive(events: AsyncIterator[bytes | None]) -> AsyncIterator[bytes]:
    """The events, with a comment whenever there was none for a while; None says "nothing new"."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    async for one in events:
        if one is None and loop.time() - last < HEARTBEAT_SECONDS:
            continue
        last = loop.time()
        yield b": still here\n\n" if one is None else one

"""Answers that are streams of server-sent events (HTML Living Standard, 9.2).

FastAPI encodes the events and Starlette sends them. Here is what they lack: limits for the streams
of a process and of a caller, an end of all of them at shutdown, and no transaction while one is
open.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from api.kernel.responses import error_response
from runtime.errors import PlatformError, RateLimitedError, UnavailableError

MOST_STREAMS = 100
"""Streams that one process serves at once."""
MOST_OF_ONE_CALLER = 25
KEEPALIVE_SECONDS = 10.0
"""The time a stream may be silent before a comment shows that it is open."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""The second one tells a proxy in front not to buffer events."""


class TooManyStreamsError(RateLimitedError):
    """One caller holds as many streams as it may."""

    def __init__(self) -> None:
        super().__init__(f"{MOST_OF_ONE_CALLER} streams of this caller are open; close one first.")


@dataclass(slots=True)
class Streams:
    """Streams of this process; once it is `closing`, each ends and its client reconnects."""

    open: Counter[Hashable] = field(default_factory=Counter)
    """Streams by their caller."""
    closing: bool = False

    def check(self, caller: Hashable) -> None:
        """Raises UnavailableError without room for another, TooManyStreamsError for one caller."""
        if self.open.total() >= MOST_STREAMS or self.closing:
            raise UnavailableError("Too many streams are open here; try again soon.")
        if self.open[caller] >= MOST_OF_ONE_CALLER:
            raise TooManyStreamsError

    @contextmanager
    def held(self, caller: Hashable) -> Iterator[None]:
        """Hold the place of one stream. Raises as `check` does."""
        self.check(caller)
        self.open[caller] += 1
        try:
            yield
        finally:
            self.open[caller] -= 1
            if not self.open[caller]:
                del self.open[caller]


class EventStream(EventSourceResponse):
    """Sends events as they come; the request's transaction has ended before the first."""

    def __init__(self, streams: Streams, caller: Hashable, events: AsyncIterator[bytes]) -> None:
        streams.check(caller)
        super().__init__(events, headers=_HEADERS)
        self._streams = streams
        self._caller = caller

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            try:
                # Other streams may have opened while this request's transaction ended.
                stack.enter_context(self._streams.held(self._caller))
            except PlatformError as error:
                await error_response(error)(scope, receive, send)
                return
            with suppress(ClientDisconnect):
                await super().__call__(scope, receive, send)


async def with_keepalive(events: AsyncIterator[bytes | None]) -> AsyncIterator[bytes]:
    """The events, with a comment whenever there was none for a while; None says "nothing new"."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    async for one in events:
        if one is None and loop.time() - last < KEEPALIVE_SECONDS:
            continue
        last = loop.time()
        yield KEEPALIVE_COMMENT if one is None else one

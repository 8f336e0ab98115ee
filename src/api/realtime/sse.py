"""A feed as server-sent events (HTML Living Standard, 9.2)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from datetime import datetime

from typing_extensions import override

from api.kernel.event_streams import KEEPALIVE_SECONDS
from api.kernel.responses import as_refusal
from api.realtime.feed import End, Feed
from api.realtime.hub import Hub
from api.realtime.messages import Message
from models.core.access.rules import Role
from models.core.base import Id

ABORT = "workspace.abort"
"""Key of the extension by which a connection offers to be cut off."""
LIFETIME_SECONDS = 3600.0
"""Then the client comes back with another ticket."""
MOST_UNSENT = 1 << 20
"""Bytes that may wait for a client which does not read."""


class EventFeed(Feed):
    """A feed that a response takes its events from."""

    cut_off: Callable[[], object] | None = None
    """Ends the connection, whose response cannot end while its client reads nothing."""

    def __init__(self, workspace_id: Id, user_id: Id, role: Role, until: datetime) -> None:
        super().__init__(workspace_id, user_id, role, until)
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._given = asyncio.Event()
        self._taken = asyncio.Event()

    @override
    def offer(self, messages: Iterable[Message]) -> None:
        if self._size > MOST_UNSENT:
            self.end(End.TOO_SLOW)
            return
        for one in messages:
            self._put(one.server_sent)

    @override
    async def send(self, messages: Iterable[Message]) -> None:
        for one in messages:
            while self._size > MOST_UNSENT // 4 and self.over is None:
                self._taken.clear()
                await self._taken.wait()
            self._put(one.server_sent)

    @override
    def close(self, why: End) -> None:
        self._given.set()
        self._taken.set()
        if why is End.TOO_SLOW and self.cut_off is not None:
            self.cut_off()

    def _put(self, event: bytes) -> None:
        self._waiting.append(event)
        self._size += len(event)
        self._given.set()

    async def events(self, hub: Hub, since: int | None) -> AsyncIterator[bytes | None]:
        """The events for the client until the feed ends; None each time there was nothing."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LIFETIME_SECONDS
        with hub.serving(self):
            catching_up = asyncio.create_task(hub.catch_up(self, since))
            try:
                while self.lasts() and not _failed(catching_up):
                    if self._waiting:
                        event = self._waiting.popleft()
                        self._size -= len(event)
                        self._taken.set()
                        yield event
                        continue
                    if loop.time() >= deadline:
                        return
                    self._given.clear()
                    pause = min(KEEPALIVE_SECONDS, max(0.0, deadline - loop.time()))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._given.wait(), pause)
                    yield None
            finally:
                catching_up.cancel()


def _failed(task: "asyncio.Task[None]") -> bool:
    if not task.done() or task.cancelled() or task.exception() is None:
        return False
    error = task.exception()
    assert isinstance(error, Exception)
    as_refusal(error)
    return True

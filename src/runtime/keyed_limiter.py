"""A limit on the holders of each key at once, so that one key never takes all of something."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


class KeyedLimiter:
    """Lets at most `limit` holders of each key in at once; more of that key wait in line."""

    def __init__(self, limit: int, patience: float, waiting: int | None = None) -> None:
        """`patience` is the longest wait in seconds; at most `waiting` of a key do."""
        self._limit = limit
        self._patience = patience
        self._places = None if waiting is None else limit + waiting
        self._lines: dict[Hashable, _Line] = {}

    async def room(self, key: Hashable) -> None:
        """Wait until one more of this key may wait."""
        if (line := self._lines.get(key)) is not None:
            await line.room.wait()

    @asynccontextmanager
    async def slot(self, key: Hashable) -> AsyncIterator[None]:
        """Hold a slot of `key`. Raises TimeoutError."""
        if (line := self._lines.get(key)) is None:
            line = self._lines[key] = _Line(asyncio.Semaphore(self._limit))
        elif line.users == self._places:
            raise TimeoutError
        line.enter(self._places)
        try:
            async with asyncio.timeout(self._patience if line.slots.locked() else None):
                await line.slots.acquire()
            try:
                yield
            finally:
                line.slots.release()
        finally:
            line.leave()
            if not line.users:
                del self._lines[key]


@dataclass(slots=True)
class _Line:
    slots: asyncio.Semaphore
    users: int = 0
    room: asyncio.Event = field(default_factory=asyncio.Event)

    def enter(self, places: int | None) -> None:
        self.users += 1
        if self.users == places:
            self.room.clear()
        else:
            self.room.set()

    def leave(self) -> None:
        self.users -= 1
        self.room.set()

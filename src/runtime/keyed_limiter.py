"""A limit on how many hold each key at once, so that one key never takes all of something."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass


class KeyedLimiter:
    """Lets at most `limit` holders of each key in at once; more of that key wait in line."""

    def __init__(self, limit: int, patience: float) -> None:
        """`patience` is how many seconds one waits at most."""
        self._limit = limit
        self._patience = patience
        self._lines: dict[Hashable, _Line] = {}

    @asynccontextmanager
    async def slot(self, key: Hashable) -> AsyncIterator[None]:
        """Hold a slot of `key`. Raises TimeoutError."""
        if (line := self._lines.get(key)) is None:
            line = self._lines[key] = _Line(asyncio.Semaphore(self._limit))
        line.users += 1
        try:
            async with asyncio.timeout(self._patience if line.slots.locked() else None):
                await line.slots.acquire()
            try:
                yield
            finally:
                line.slots.release()
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[key]


@dataclass(slots=True)
class _Line:
    slots: asyncio.Semaphore
    users: int = 0

"""Room for so many at once of each name, so that one name never takes all of something."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Shares:
    """Lets at most `most` of each name in at once; others of that name wait in line."""

    def __init__(self, most: int, patience: float) -> None:
        """`patience` is how many seconds one waits at most."""
        self._most = most
        self._patience = patience
        self._lines: dict[Hashable, _Line] = {}

    @asynccontextmanager
    async def held(self, name: Hashable) -> AsyncIterator[None]:
        """Be one of that name while the block runs. Raises TimeoutError."""
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = _Line(self._most)
        line.users += 1
        try:
            if line.room.locked():
                async with asyncio.timeout(self._patience):
                    await line.room.acquire()
            else:
                await line.room.acquire()
            try:
                yield
            finally:
                line.room.release()
        finally:
            line.users -= 1
            if not line.users:
                del self._lines[name]


class _Line:
    __slots__ = ("room", "users")

    def __init__(self, most: int) -> None:
        self.room = asyncio.Semaphore(most)
        self.users = 0

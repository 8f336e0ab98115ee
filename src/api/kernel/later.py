"""An answer that a durable job gives: the request commits, then waits for our rows to show it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from api.kernel.envelope import Data
from runtime.database import Database, UnitOfWork

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.05

Look = Callable[[UnitOfWork, bool], Awaitable[Any | None]]
"""Takes a reading and whether the time is over. Gives what stands under `data`, or None to be
asked again; when the time is over it must answer or raise."""


@dataclass(frozen=True, slots=True)
class Later:
    """What `look` finds after the commit, within so many seconds."""

    look: Look
    within: float


async def settled(database: Database, later: Later) -> Data[Any]:
    """The answer, looked for until it is there or the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + later.within
    pause = _FIRST_PAUSE
    while True:
        last = loop.time() >= deadline
        async with database.reading() as work:
            found = await later.look(work, last)
        if found is not None:
            return Data(found)
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.5)

"""An answer that a durable job gives: the request commits, then waits for our rows to show it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from api.kernel.envelope import Data
from runtime.database import Database, UnitOfWork

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.05
_LATENESS = 0.05
"""Of the time waited so far, what the next pause may take: who waits long is looked for seldom."""

Look = Callable[[UnitOfWork, bool], Awaitable[Any | None]]
"""Takes a reading and whether the time is over. Gives what stands under `data` or a Response, or
None to be asked again; when the time is over it must answer or raise."""


@dataclass(frozen=True, slots=True)
class Later:
    """What `look` finds after the commit, within so many seconds."""

    look: Look
    within: float


async def settled(database: Database, later: Later) -> Data[Any] | Response:
    """The answer, looked for until it is there or the time is over."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    pause = _FIRST_PAUSE
    while True:
        waited = loop.time() - started
        last = waited >= later.within
        async with database.reading() as work:
            found = await later.look(work, last)
        if found is not None:
            return found if isinstance(found, Response) else Data(found)
        await asyncio.sleep(min(pause, max(0, later.within - waited)))
        pause = min(max(_LONGEST_PAUSE, waited * _LATENESS), pause * 1.5)

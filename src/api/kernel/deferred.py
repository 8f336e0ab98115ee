"""Answers that a durable job gives: the request commits, then reads our rows until they show it.

An endpoint returns `request.deferred(poll, within=…)`; the pipeline waits, and holds no
transaction between two reads.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from starlette.responses import Response

from api.kernel.body import ClientGoneError
from api.kernel.responses import Data
from runtime.database import Database, UnitOfWork

T = TypeVar("T")

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.05
_SHARE_OF_WAIT = 0.05
"""A pause may grow to this share of the time waited so far: long waits read seldom."""

Poll: TypeAlias = Callable[[UnitOfWork, bool], Awaitable[T | None]]
"""Takes a reading and whether the time is over. Gives what stands under `data` or a Response, or
None to be asked again. When the time is over it must answer or raise."""


Then: TypeAlias = Callable[[UnitOfWork], Awaitable[None]]
"""The work done, in a transaction of its own, once there is an answer or none can come."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The answer `poll` finds after the commit, within so many seconds."""

    poll: Poll[Any]
    within: float
    then: Then | None = None


async def wait_for_answer(
    database: Database, deferred: Deferred, is_gone: Callable[[], Awaitable[bool]]
) -> Data[Any] | Response:
    """Poll until there is an answer or the time is over.

    Raises what `poll` raises, and ClientGoneError for a client that waits no longer: nobody was
    given the answer.
    """
    try:
        return await _answer(database, deferred, is_gone)
    finally:
        if deferred.then is not None:
            async with database.transaction() as work:
                await deferred.then(work)


async def _answer(
    database: Database, deferred: Deferred, is_gone: Callable[[], Awaitable[bool]]
) -> Data[Any] | Response:
    loop = asyncio.get_running_loop()
    started = loop.time()
    pause = _FIRST_PAUSE
    while True:
        waited = loop.time() - started
        last = waited >= deferred.within
        async with database.reading() as work:
            found = await deferred.poll(work, last)
        if await is_gone():
            raise ClientGoneError
        if found is not None:
            return found if isinstance(found, Response) else Data(found)
        await asyncio.sleep(min(pause, max(0, deferred.within - waited)))
        pause = min(max(_LONGEST_PAUSE, waited * _SHARE_OF_WAIT), pause * 1.5)

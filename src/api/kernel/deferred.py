"""Answers that a durable job gives: the request commits, then reads our rows when it has ended.

An endpoint returns `request.deferred(poll, within=…)`; the pipeline waits, and holds no
transaction between two reads.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from starlette.responses import Response

from api.kernel.awaited_work import Wait
from api.kernel.body import ClientGoneError
from api.kernel.responses import Data
from runtime.database import Database, UnitOfWork

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EndOf:
    """Nothing can be answered before the end of some work."""

    work_id: UUID


Poll: TypeAlias = Callable[[UnitOfWork, bool], Awaitable[T | EndOf | None]]
"""Takes a reading and whether the time is over. Gives what stands under `data` or a Response, or
None to be asked again, or what else to wait for. When the time is over it must answer or raise."""


Then: TypeAlias = Callable[[UnitOfWork], Awaitable[None]]
"""The work done, in a transaction of its own, once there is an answer or none can come."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The answer `poll` finds after the commit, within so many seconds.

    `is_fresh` says that this request has accepted the work: there is no answer at once.
    """

    poll: Poll[Any]
    within: float
    wait: Wait
    then: Then | None = None
    is_fresh: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the answer."""


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
    if deferred.is_fresh:
        await deferred.wait.pause(0, deferred.within)
    while True:
        waited = loop.time() - started
        last = deferred.wait.is_over or waited >= deferred.within
        async with database.reading() as work:
            answer = await deferred.poll(work, last)
        if await is_gone():
            raise ClientGoneError
        if isinstance(answer, EndOf):
            # Its end may have come between the reading and this line.
            if deferred.wait.turn_to(answer.work_id):
                continue
        elif answer is not None:
            return answer if isinstance(answer, Response) else Data(answer)
        await deferred.wait.pause(waited, deferred.within - waited)

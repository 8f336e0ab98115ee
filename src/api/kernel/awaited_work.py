"""The durable work that requests wait for, and the answers that are read when it has ended.

An endpoint returns `request.deferred(poll, within=…)`; the pipeline waits, and holds no transaction
between two reads. Whoever ends work notifies all API processes of its id after the commit
(`runtime/postgresql/notifier.py`), so a request that waits reads its row once, when there is
something to read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary, WeakValueDictionary

from starlette.responses import Response

from api.kernel.body import ClientGoneError
from api.kernel.responses import Data
from runtime.database import Database, UnitOfWork

FALLBACK_SECONDS = 1.0
"""A request looks by itself after this time: the notification may be lost."""
PATIENT_SECONDS = 10.0
"""The same for a request that its caller asked to wait: there may be many of them."""
POLL_SECONDS = 0.05
"""The same in a process that does not listen."""
MOST_PATIENT = 100
"""Requests of one workspace that may wait in a process because their callers asked for it."""
_SHARE_OF_WAIT = 0.05
"""A pause may grow to this share of the time waited so far: long waits look seldom."""


class AwaitedWork:
    """The work that is waited for, by its id."""

    def __init__(self) -> None:
        self.is_listening = False
        self.is_closing = False
        self._ends: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        """An entry lasts as long as a request holds its event."""
        self._patient: WeakKeyDictionary[Wait, Hashable] = WeakKeyDictionary()
        """The waits that callers asked for, with whose they are, as long as a request has them."""

    def end_of(self, work_id: UUID) -> asyncio.Event:
        """The event that is set at the next notification of this work."""
        return self._ends.setdefault(str(work_id), asyncio.Event())

    def wake(self, work_ids: str) -> None:
        """Set the events of some ids, which stand between blanks."""
        self._set(work_ids.split())

    def wake_all(self) -> None:
        """The listening begins: what was notified before it is lost."""
        self.is_listening = True
        self._set(list(self._ends))

    def close(self) -> None:
        """End the waits that callers asked for: the process stops."""
        self.is_closing = True
        self._set(list(self._ends))

    def patient_wait(self, work_id: UUID, owner: Hashable) -> "Wait | None":
        """A wait that a caller asked for; None where its owner has too many."""
        if list(self._patient.values()).count(owner) >= MOST_PATIENT:
            return None
        wait = Wait(self, work_id, is_patient=True)
        self._patient[wait] = owner
        return wait

    def _set(self, work_ids: Iterable[str]) -> None:
        for work_id in work_ids:
            if (event := self._ends.pop(work_id, None)) is not None:
                event.set()


class Wait:
    """A wait for some work; it begins before the commit that has the work started."""

    def __init__(self, awaited: AwaitedWork, work_id: UUID, *, is_patient: bool = False) -> None:
        self._is_patient = is_patient
        self._awaited = awaited
        self._work_id = work_id
        self._end = awaited.end_of(work_id)

    @property
    def is_over(self) -> bool:
        """True when the process stops before what the caller waits for."""
        return self._is_patient and self._awaited.is_closing

    def turn_to(self, work_id: UUID) -> bool:
        """Wait for other work from now on; False where it is waited for already."""
        if work_id == self._work_id:
            return False
        self._work_id, self._end = work_id, self._awaited.end_of(work_id)
        return True

    async def pause(self, waited: float, seconds_left: float) -> None:
        """Wait for a notification, for less than `seconds_left` after having `waited` so long."""
        if self.is_over:
            return
        fallback = PATIENT_SECONDS if self._is_patient else FALLBACK_SECONDS
        shortest = fallback if self._awaited.is_listening else POLL_SECONDS
        longest = max(shortest, waited * _SHARE_OF_WAIT)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(longest, max(0.0, seconds_left))):
                await self._end.wait()
        # The next notification counts from before the next look at the row.
        self._end = self._awaited.end_of(self._work_id)


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
    """The answer that `poll` finds after the commit, within `within` seconds.

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

    Raises what `poll` raises, and ClientGoneError for a client that waits no longer: no one was
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

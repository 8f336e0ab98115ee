"""The durable work that requests of this process wait for.

Whoever ends work notifies all API processes of its id after the commit (`runtime/notifier.py`), so
a request that waits reads its row once, when there is something to read.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID
from weakref import WeakValueDictionary

FALLBACK_SECONDS = 1.0
"""A request looks by itself after this time: the notification may be lost."""
POLL_SECONDS = 0.05
"""The same in a process that does not listen."""
_SHARE_OF_WAIT = 0.05
"""A pause may grow to this share of the time waited so far: long waits look seldom."""


class AwaitedWork:
    """The work that is waited for, by its id."""

    def __init__(self) -> None:
        self.longest_pause = POLL_SECONDS
        self._ends: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        """An entry lasts as long as a request holds its event."""

    def end_of(self, work_id: UUID) -> asyncio.Event:
        """The event that is set at the next notification of this work."""
        return self._ends.setdefault(str(work_id), asyncio.Event())

    def wake(self, work_ids: str) -> None:
        """Set the events of some ids, which stand between blanks."""
        self._set(work_ids.split())

    def wake_all(self) -> None:
        """The listening begins: what was notified before it is lost."""
        self.longest_pause = FALLBACK_SECONDS
        self._set(list(self._ends))

    def _set(self, work_ids: Iterable[str]) -> None:
        for work_id in work_ids:
            if (event := self._ends.pop(work_id, None)) is not None:
                event.set()


class Wait:
    """A wait for some work; it begins before the commit that has the work started."""

    def __init__(self, awaited: AwaitedWork, work_id: UUID) -> None:
        self._awaited = awaited
        self._work_id = work_id
        self._end = awaited.end_of(work_id)

    async def pause(self, waited: float, seconds_left: float) -> None:
        """Wait for a notification, for less than `seconds_left` after having `waited` so long."""
        longest = max(self._awaited.longest_pause, waited * _SHARE_OF_WAIT)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(longest, max(0.0, seconds_left))):
                await self._end.wait()
        # The next notification counts from before the next look at the row.
        self._end = self._awaited.end_of(self._work_id)

"""A share of the database's connections for each caller, so that one never has all of them.

Requests that wait for a locked row, or for a long evaluation, hold a connection meanwhile. Beyond
the share of their caller they wait in line without one. A heavy request, such as a batch or a
query, fills a processor: a caller's heavy requests take turns, which leaves room for everybody
else's.
"""

import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack, asynccontextmanager

from runtime.errors import RateLimitedError
from runtime.keyed_limiter import KeyedLimiter

_PATIENCE_SECONDS = 10.0
"""The time a request waits in the line of its caller: as long as one waits for a connection."""
_HEAVY = max(1, (os.cpu_count() or 1) // 2)
"""Heavy requests of one caller at once; PostgreSQL is taken to have as many processors."""
_NAMES = 10_000


class CrowdError(RateLimitedError):
    """Requests of one caller wait for each other."""

    def __init__(self) -> None:
        super().__init__("Too many requests of this caller are under way; send fewer at once.")


class ConnectionShares:
    """Lets the requests of each caller hold at most `most` connections at once, `heavy` fewer."""

    def __init__(self, most: int, patience: float = _PATIENCE_SECONDS, heavy: int = _HEAVY) -> None:
        self._shares = KeyedLimiter(most, patience)
        self._heavy = KeyedLimiter(min(heavy, most), patience)
        self._owners: OrderedDict[Hashable, Hashable] = OrderedDict()

    def share_of(self, caller: Hashable) -> Hashable:
        """The name a caller's share goes by: their owner's where it is known, else their own."""
        return self._owners.get(caller, caller)

    def belongs(self, caller: Hashable, owner: Hashable) -> None:
        """Let a caller, such as one key of a workspace, share with all others of their owner."""
        if caller not in self._owners:
            self._owners[caller] = owner
            if len(self._owners) > _NAMES:
                self._owners.popitem(last=False)

    @asynccontextmanager
    async def held(self, share: Hashable, *, heavy: bool = False) -> AsyncIterator[None]:
        """Hold one connection of a share. Raises CrowdError after waiting for too long."""
        entered = False
        try:
            async with AsyncExitStack() as stack:
                if heavy:
                    await stack.enter_async_context(self._heavy.slot(share))
                await stack.enter_async_context(self._shares.slot(share))
                entered = True
                yield
        except TimeoutError:
            if entered:
                raise
            raise CrowdError from None

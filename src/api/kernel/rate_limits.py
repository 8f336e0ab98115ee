"""Limits how often something may be requested: token buckets in the memory of this process.

Each process counts for itself, so several of them together let through several times as much.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from runtime.errors import RateLimitedError


class TooOftenError(RateLimitedError):
    """The bucket is empty; `Retry-After` says in how many seconds it no longer is."""

    def __init__(self, per_second: float, seconds: float) -> None:
        super().__init__("This was called too often; try again after the seconds in Retry-After.")
        wait = str(max(1, math.ceil(seconds)))
        self.headers = {  # type: ignore[misc]  # of this refusal, not of its class
            "Retry-After": wait,
            "X-RateLimit-Limit": f"{per_second:g}",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": wait,
        }


class RateLimit:
    """Lets each name through `per_second` times on average and `burst` times at once; 0 is off."""

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        names: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Of at most `names` names the buckets are kept, those that were used last."""
        self._per_second = per_second
        self._burst = max(1, burst)
        self._names = names
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Count one call. Raises TooOftenError."""
        if self._per_second <= 0:
            return
        now = self._clock()
        left, since = self._buckets.pop(name, (float(self._burst), now))
        left = min(self._burst, left + (now - since) * self._per_second)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now)
        if len(self._buckets) > self._names:
            self._buckets.popitem(last=False)
        if not allowed:
            raise TooOftenError(self._per_second, (1 - left) / self._per_second)

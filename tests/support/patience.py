"""Waiting for what other processes do: until it is so, or until it should have been long ago."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

ENOUGH = 240
"""Seconds that nothing takes, however slow the machine: they end a test that hangs.

They are no promise. A test that promises a time gives its own.
"""

Found = TypeVar("Found")


def promised(seconds: float) -> float:
    """What a promise for a quiet machine allows on this one, as busy as it has been."""
    return 3 * seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


async def found_when(
    read: Callable[[], Awaitable[Found]], holds: Callable[[Found], bool], what: str = "it"
) -> Found:
    """What `read` returns once it `holds`. Fails with `what` and the last value if it never does.

    It is read less and less often: each reading takes time from what it waits for.
    """
    pause, found = 0.02, None
    try:
        async with asyncio.timeout(ENOUGH):
            while not holds(found := await read()):
                await asyncio.sleep(pause)
                pause = min(1.5 * pause, 0.2)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen within {ENOUGH} s: {found!r:.2000}") from None
    return found


async def eventually(condition: Callable[[], Awaitable[bool]], what: str = "it") -> None:
    """Return once the condition holds. Fails with `what` when it takes too long."""
    await found_when(condition, bool, what)

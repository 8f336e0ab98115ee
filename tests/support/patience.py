"""Waiting for what other processes do: until it is so, or until it should have been long ago."""

import asyncio
from collections.abc import Awaitable, Callable

ENOUGH = 240
"""Seconds that nothing takes, however slow the machine: they end a test that hangs.

They are no promise. A test that promises a time gives its own.
"""


async def eventually(condition: Callable[[], Awaitable[bool]], what: str = "it") -> None:
    """Return once the condition holds. Fails with `what` when it takes too long."""
    try:
        async with asyncio.timeout(ENOUGH):
            while True:
                if await condition():
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen within {ENOUGH} s") from None

"""Waiting for what other processes do: until it is so, or until it should have been long ago."""

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(
    condition: Callable[[], Awaitable[bool]], seconds: float = 30, what: str = "it"
) -> None:
    """Return once the condition holds. Fails with `what` when it takes too long."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await condition():
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen within {seconds:.0f} s") from None

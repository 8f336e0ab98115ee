"""Reading what is worked on next beside the work on what was read before."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Read = TypeVar("Read")


async def each_ahead(
    read: Callable[[Item], Awaitable[Read]], items: Iterable[Item]
) -> AsyncGenerator[Read, None]:
    """Read each item; the one that follows is read while the caller works on one.

    Close it when leaving it early (`contextlib.aclosing`): what is read then is cancelled.
    """
    remaining = iter(items)

    def begin() -> asyncio.Future[Read] | None:
        for item in remaining:
            return asyncio.ensure_future(read(item))
        return None

    following = begin()
    try:
        while following is not None:
            ready = await following
            following = begin()
            yield ready
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

"""What is worked on next is read beside the work, and let go when the work ends early."""

import asyncio
from contextlib import aclosing

from activities.legacy_imports import each_ahead


async def test_the_item_that_follows_is_read_beside_the_work() -> None:
    begun: list[int] = []

    async def read(item: int) -> int:
        begun.append(item)
        return item * 10

    seen = []
    async with aclosing(each_ahead(read, [1, 2, 3])) as values:
        async for value in values:
            await asyncio.sleep(0)
            seen.append((value, list(begun)))
    assert seen == [(10, [1, 2]), (20, [1, 2, 3]), (30, [1, 2, 3])]


async def test_reading_is_cancelled_with_the_work() -> None:
    cancelled = asyncio.Event()

    async def read(item: int) -> int:
        if item == 1:
            return item
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return item

    async with aclosing(each_ahead(read, [1, 2])) as values:
        async for _ in values:
            await asyncio.sleep(0)
            break
    assert cancelled.is_set()


async def test_nothing_is_read_of_nothing() -> None:
    async def read(item: int) -> int:
        return item

    async with aclosing(each_ahead(read, [])) as values:
        assert [value async for value in values] == []

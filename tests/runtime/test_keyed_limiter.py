"""Slots of each key."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from runtime.keyed_limiter import KeyedLimiter


async def test_one_key_leaves_slots_for_others() -> None:
    limiter = KeyedLimiter(2, patience=0.01)
    async with limiter.slot("a"), limiter.slot("a"):
        with pytest.raises(TimeoutError):
            async with limiter.slot("a"):
                raise AssertionError
        async with limiter.slot("b"):
            pass
    async with limiter.slot("a"):
        pass


async def test_a_waiting_caller_enters_when_another_leaves() -> None:
    limiter, entered = KeyedLimiter(1, patience=10), asyncio.Event()

    async def enter() -> None:
        async with limiter.slot("a"):
            entered.set()

    async with limiter.slot("a"):
        waiting = asyncio.create_task(enter())
        await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()


async def test_a_cancelled_caller_takes_no_room() -> None:
    limiter = KeyedLimiter(1, patience=10)
    async with limiter.slot("a"):
        waiting = asyncio.create_task(AsyncExitStack().enter_async_context(limiter.slot("a")))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    async with limiter.slot("a"):
        pass
    assert limiter._lines == {}


async def test_more_than_may_wait_are_refused_at_once_and_told_of_room() -> None:
    limiter = KeyedLimiter(1, patience=10, waiting=1)
    await limiter.room("a")
    async with AsyncExitStack() as first:
        await first.enter_async_context(limiter.slot("a"))
        await limiter.room("a")
        second = asyncio.create_task(AsyncExitStack().enter_async_context(limiter.slot("a")))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10), limiter.slot("a"):
                raise AssertionError
        told = asyncio.create_task(limiter.room("a"))
        await asyncio.sleep(0)
        assert not told.done()
        await limiter.room("b")
    await asyncio.wait_for(told, 10)
    await second

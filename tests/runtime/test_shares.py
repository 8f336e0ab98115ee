"""Room of each name."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from runtime.shares import Shares


async def test_one_name_leaves_room_for_others() -> None:
    shares = Shares(2, patience=0.01)
    async with shares.held("a"), shares.held("a"):
        with pytest.raises(TimeoutError):
            async with shares.held("a"):
                raise AssertionError
        async with shares.held("b"):
            pass
    async with shares.held("a"):
        pass


async def test_who_waits_comes_in_when_another_leaves() -> None:
    shares, entered = Shares(1, patience=10), asyncio.Event()

    async def enter() -> None:
        async with shares.held("a"):
            entered.set()

    async with shares.held("a"):
        waiting = asyncio.create_task(enter())
        await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()


async def test_who_gives_up_takes_no_room() -> None:
    shares = Shares(1, patience=10)
    async with shares.held("a"):
        waiting = asyncio.create_task(AsyncExitStack().enter_async_context(shares.held("a")))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    async with shares.held("a"):
        pass
    assert shares._lines == {}

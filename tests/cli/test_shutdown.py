"""Services that run in the background of a process end with it."""

import asyncio
from contextlib import suppress

import pytest

from cli import shutdown
from cli.shutdown import background
from runtime.clock import wait_until_set


async def test_a_service_that_lost_its_cancel_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutdown, "CANCEL_AGAIN_SECONDS", 0.01)
    ended = asyncio.Event()

    async def deaf() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with background(deaf()):
        await asyncio.sleep(0)
    assert ended.is_set()


async def test_a_service_has_time_for_its_end() -> None:
    steps = []

    async def careful() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            steps.append("written")

    async with background(careful()):
        await asyncio.sleep(0)
    assert steps == ["written"]


async def test_a_cancel_that_meets_a_wake_up_is_not_lost() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_until_set(event, 60))
    await asyncio.sleep(0)
    event.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("is_set", [True, False])
async def test_a_wait_tells_whether_its_event_is_set(is_set: bool) -> None:
    event = asyncio.Event()
    if is_set:
        event.set()
    assert await wait_until_set(event, 0.001) is is_set

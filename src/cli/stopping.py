"""Working until a signal asks to stop."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


async def until_stopped(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run the work until it fails or a signal asks to stop. Raises what the work raises."""
    working = asyncio.create_task(work)
    waiting = asyncio.create_task(stopping.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working

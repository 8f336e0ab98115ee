"""The server of the API: uvicorn's, which sleeps while nobody asks."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from typing_extensions import override

TICK_SECONDS = 1.0
"""The header `Date` is renewed that often."""


class Server(uvicorn.Server):
    """Wakes up once a second and at its end, where uvicorn looks ten times a second for that.

    `on_exit` is called when the first signal comes.
    """

    def __init__(self, config: uvicorn.Config, on_exit: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_exit = on_exit
        self._exit = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @override
    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Only a tick whose number is a multiple of ten renews the headers.
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._exit.wait()

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_exit()
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._exit.set)

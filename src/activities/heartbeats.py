"""Heartbeats beside whatever an activity is doing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity

HEARTBEAT_SECONDS = 2.0
"""A cancelled activity learns of it with a heartbeat, so this bounds how long it goes on."""


@asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """Heartbeat while the block runs, so that a lost worker and a cancel are both noticed."""

    async def beat() -> None:
        while True:
            # What is over before the first beat costs the server none.
            await asyncio.sleep(HEARTBEAT_SECONDS)
            activity.heartbeat()

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()

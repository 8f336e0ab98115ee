"""Heartbeats beside whatever an activity is doing."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from temporalio import activity

HEARTBEAT_SECONDS = 1.0
"""A cancelled activity learns of it with a heartbeat, so this bounds how long it goes on."""


@asynccontextmanager
async def heartbeats(
    counts: Mapping[str, int] | None = None,
) -> AsyncIterator[None]:
    """Heartbeat while the block runs, so that a lost worker and a cancel are both noticed.

    Operators see the `counts` so far on the pending activity. A local one has no heartbeats: its
    workflow task is kept alive in their place. Nor has a step that is called without a worker.
    """
    if not activity.in_activity() or activity.info().is_local:
        yield
        return

    async def beat() -> None:
        while True:
            # What is over before the first beat costs the server none.
            await asyncio.sleep(HEARTBEAT_SECONDS)
            activity.heartbeat(*([] if counts is None else [counts]))

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        # A beat that could not be sent is missed by the server, which acts on it.
        task.add_done_callback(lambda beats: beats.cancelled() or beats.exception())

"""Signs of life beside long work: of an activity to Temporal, of a transaction to PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import sqlalchemy as sa
from temporalio import activity

from runtime.database import UnitOfWork

HEARTBEAT_SECONDS = 1.0
"""A cancelled activity learns of it with a heartbeat, so this bounds the time it continues."""


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
            # Work that ends before the first beat sends none.
            await asyncio.sleep(HEARTBEAT_SECONDS)
            activity.heartbeat(*([] if counts is None else [counts]))

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        # A beat that could not be sent is missed by the server, which acts on it.
        task.add_done_callback(lambda beats: beats.cancelled() or beats.exception())


# Six attempts before the timeout, so that a slow answer does not end the transaction.
PAUSE = 10.0
"""Seconds between signs of life to the database, which ends idle transactions after 60."""

T = TypeVar("T")


async def keep_open(work: UnitOfWork, doing: Awaitable[T]) -> T:
    """Do something long that asks nothing of the database, and keep the transaction."""
    task = asyncio.ensure_future(doing)
    try:
        while not (await asyncio.wait({task}, timeout=PAUSE))[0]:
            await work.scalar(sa.select(sa.literal(1)))
        return task.result()
    finally:
        task.cancel()
        # A lost transaction is the error to report; the result of the task no longer matters.
        await asyncio.gather(task, return_exceptions=True)

"""Long work beside an open transaction."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from sqlalchemy import literal, select

from runtime.database import UnitOfWork

PAUSE = 10.0
"""Seconds between signs of life to the database, which ends idle transactions after 60."""

T = TypeVar("T")


async def keep_open(work: UnitOfWork, doing: Awaitable[T]) -> T:
    """Do something long that asks nothing of the database, and keep the transaction."""
    task = asyncio.ensure_future(doing)
    try:
        while not (await asyncio.wait({task}, timeout=PAUSE))[0]:
            await work.scalar(select(literal(1)))
        return task.result()
    finally:
        task.cancel()
        # A transaction that is lost meanwhile is what is wrong, whatever becomes of the task.
        await asyncio.gather(task, return_exceptions=True)

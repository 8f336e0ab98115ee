"""A poller that looks for rows to act on: at once when it is woken, and every second besides."""

import asyncio
import contextlib
from abc import ABC, abstractmethod

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

log = structlog.get_logger()

POLL_SECONDS = 1.0
"""Seconds between two turns without a notification: for lost ones, and for what time brings."""


class Poller(ABC):
    """Takes turns until it is stopped; `wake` lets it take the next one at once."""

    def __init__(self) -> None:
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look for new rows now."""
        self._wake.set()

    @abstractmethod
    async def turn(self) -> bool:
        """Act on some rows. False when there were none."""

    async def run(self) -> None:
        """Take turns for ever; an unreachable database only delays them."""
        while True:
            self._wake.clear()
            try:
                if await self.turn():
                    continue
            except (psycopg.Error, DBAPIError, PoolTimeoutError, PendingRollbackError):
                log.warning(
                    "the database could not be asked", by=type(self).__name__, exc_info=True
                )
                await asyncio.sleep(POLL_SECONDS)
            except Exception:
                log.exception("a turn failed", by=type(self).__name__)
                await asyncio.sleep(POLL_SECONDS)
            else:
                await self._wait()

    async def _wait(self) -> None:
        # wait_for swallows a cancel that meets a wake-up, until Python 3.12 (gh-86296).
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await self._wake.wait()

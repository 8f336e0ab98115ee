"""Wakes relays after commits that wrote to the outbox.

NOTIFY takes a database-wide lock at commit, so it never rides on a writer's transaction: one
connection of this process sends it, and commits that come close together share one.
"""

import asyncio
import contextlib

import psycopg
import structlog

from runtime.outbox import CHANNEL

log = structlog.get_logger()

RETRY_SECONDS = 1.0


class OutboxNotifier:
    """`notify` is called after a commit and returns at once; `run` sends."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._due = asyncio.Event()

    def notify(self) -> None:
        self._due.set()

    async def run(self) -> None:
        """Send for ever; while the database is away, relays find their work by polling."""
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                async with await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True
                ) as connection:
                    await self._send(connection)
            log.warning("the outbox notifier lost its connection")
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, connection: psycopg.AsyncConnection) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            await connection.execute(f"NOTIFY {CHANNEL}")

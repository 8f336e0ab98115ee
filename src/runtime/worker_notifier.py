"""NOTIFY and LISTEN between processes: tells workers that a commit left something for them to do.

That is a row of the outbox, an event that an automation subscribes to, or a run that has ended and
so makes room for another. A notification carries nothing; the worker looks at its tables. One that
is lost costs a second, because workers also look once a second.
"""

import asyncio
import contextlib
from collections.abc import Callable

import psycopg
import structlog

log = structlog.get_logger()

CHANNEL = "worker"
RETRY_SECONDS = 1.0


class WorkerNotifier:
    """Notifies the workers of all processes: `notify` returns at once, `run` sends.

    PostgreSQL takes a database-wide lock when a transaction with a NOTIFY commits. So it is never
    part of the transaction that is announced: one connection of this process sends it afterwards,
    and commits that come close together share one.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._due = asyncio.Event()

    def notify(self) -> None:
        """Notify soon; call it after the commit."""
        self._due.set()

    async def run(self) -> None:
        """Send for ever; while the database is away, workers find their work by polling."""
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                async with await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True
                ) as connection:
                    await self._send(connection)
            log.warning("the worker notifier lost its connection")
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, connection: psycopg.AsyncConnection) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            await connection.execute(f"NOTIFY {CHANNEL}")


async def listen(url: str, wake: Callable[[], None]) -> None:
    """Call `wake` on every notification, reconnecting for ever; `url` is libpq's."""
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                async for _ in connection.notifies():
                    wake()
        except Exception as error:  # noqa: BLE001  # also a standby, where nobody can listen yet
            reason = type(error).__name__
            log.warning("the worker's listener lost its connection", reason=reason)
            await asyncio.sleep(RETRY_SECONDS)

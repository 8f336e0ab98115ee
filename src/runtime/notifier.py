"""NOTIFY and LISTEN between processes: that there is something to look at, after a commit.

Workers hear that a commit left something for them to do: a row of the outbox, an event that an
automation subscribes to, or a run that has ended and so makes room for another. Readers of the log
of a workspace hear which log has grown. Whoever is notified looks at the tables; a notification
that is lost costs a second, because they also look once a second.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection

import psycopg
import structlog

log = structlog.get_logger()

CHANNEL = "worker"
LOG_CHANNEL = "workspace_log"
RETRY_SECONDS = 1.0
_MOST_AT_ONCE = 1000
LOG_PAUSE_SECONDS = 0.02
"""After readers were notified, before they are again: writers of very much do so together."""


class Notifier:
    """Notifies the other processes: `notify` and `notify_readers` return at once, `run` sends.

    PostgreSQL takes a database-wide lock when a transaction with a NOTIFY commits. So it is never
    part of the transaction that is announced: one connection of this process sends it afterwards,
    and commits that come close together share one.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._due = asyncio.Event()
        self._workers = False
        self._logs: set[str] = set()

    def notify(self) -> None:
        """Notify the workers soon; call it after the commit."""
        self._workers = True
        self._due.set()

    def notify_readers(self, workspace_ids: Collection[str]) -> None:
        """Notify soon who reads the logs of these workspaces; call it after the commit."""
        self._logs.update(workspace_ids)
        self._due.set()

    async def run(self) -> None:
        """Send for ever; while the database is away, the others find their work by polling."""
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                async with await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True
                ) as connection:
                    await self._send(connection)
            log.warning("the notifier lost its connection")
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, connection: psycopg.AsyncConnection) -> None:
        loop = asyncio.get_running_loop()
        notified_at = 0.0
        while True:
            await self._due.wait()
            self._due.clear()
            workers, self._workers = self._workers, False
            if workers:
                await connection.execute(f"NOTIFY {CHANNEL}")
            wait = notified_at + LOG_PAUSE_SECONDS - loop.time()
            if self._logs and wait > 0:
                loop.call_later(wait, self._due.set)
                continue
            changed, self._logs = sorted(self._logs), set()
            notified_at = loop.time() if changed else notified_at
            for first in range(0, len(changed), _MOST_AT_ONCE):
                await connection.execute(
                    "SELECT pg_notify(%s, id) FROM unnest(%s::text[]) AS id",
                    (LOG_CHANNEL, changed[first : first + _MOST_AT_ONCE]),
                    prepare=True,
                )


async def listen(url: str, wake: Callable[[], None]) -> None:
    """Call `wake` when workers have something to do, reconnecting for ever; `url` is libpq's."""
    await _listen(url, CHANNEL, lambda _: wake(), lambda: None)


async def listen_to_logs(
    url: str, on_change: Callable[[str], None], on_connect: Callable[[], None]
) -> None:
    """Call `on_change` with the id of each workspace whose log has grown, reconnecting for ever.

    `on_connect` is called whenever the listening begins: what was sent before is lost.
    """
    await _listen(url, LOG_CHANNEL, on_change, on_connect)


async def _listen(
    url: str, channel: str, on_payload: Callable[[str], None], on_connect: Callable[[], None]
) -> None:
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await connection.execute(f"LISTEN {channel}")
                on_connect()
                async for notification in connection.notifies():
                    on_payload(notification.payload)
        except Exception as error:  # noqa: BLE001  # also a standby, where nobody can listen yet
            reason = type(error).__name__
            log.warning("a listener lost its connection", channel=channel, reason=reason)
            await asyncio.sleep(RETRY_SECONDS)

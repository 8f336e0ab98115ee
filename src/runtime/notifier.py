"""NOTIFY and LISTEN between processes: that there is something to look at, after a commit.

Workers hear that a commit left something for them to do: a row of the outbox, an event that an
automation subscribes to, or a run that has ended and so makes room for another. Readers of the log
of a workspace hear which log has grown. Requests that wait for durable work hear of its end. All
look at the tables then; a notification that is lost costs a second, because they also look once a
second.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NoReturn, TypeVar
from uuid import UUID

import psycopg
import structlog

log = structlog.get_logger()

_Value = TypeVar("_Value")

CHANNEL = "worker"
"""Without a payload."""
LOG_CHANNEL = "workspace_log"
"""The id of a workspace."""
ANSWER_CHANNEL = "answer"
"""Ids of work that has ended, or has an answer, with blanks between them."""
RETRY_SECONDS = 1.0
_MOST_AT_ONCE = 1000
"""Notifications of a statement."""
_IDS_AT_ONCE = 200
"""The payload of a notification is shorter than 8,000 bytes."""
PAUSE_SECONDS = 0.01
"""After a notification, before the next one: a process sends a hundred a second at most."""


class Notifier:
    """Notifies the other processes: its other methods return at once, `run` sends.

    PostgreSQL takes a database-wide lock when a transaction with a NOTIFY commits. So it is never
    part of the transaction that is announced: one connection of this process sends it afterwards,
    and commits that come close together share one.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._due = asyncio.Event()
        self._workers = False
        self._logs: set[str] = set()
        self._answers: set[str] = set()

    def notify(self) -> None:
        """Notify the workers soon; call it after the commit."""
        self._workers = True
        self._due.set()

    def notify_readers(self, workspace_ids: Collection[str]) -> None:
        """Notify soon who reads the logs of these workspaces; call it after the commit."""
        self._logs.update(workspace_ids)
        self._due.set()

    def notify_waiters(self, work_ids: Collection[UUID]) -> None:
        """Notify soon who waits for the end of this work; call it after the commit."""
        self._answers.update(map(str, work_ids))
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
        while True:
            await self._due.wait()
            self._due.clear()
            for messages in _pieces(self._taken(), _MOST_AT_ONCE):
                channels, payloads = zip(*messages, strict=True)
                await connection.execute(
                    "SELECT pg_notify(channel, payload)"
                    " FROM unnest(%s::text[], %s::text[]) AS message (channel, payload)",
                    ([*channels], [*payloads]),
                    prepare=True,
                )
            await asyncio.sleep(PAUSE_SECONDS)

    def _taken(self) -> Sequence[tuple[str, str]]:
        """The channels and payloads of everything to tell, which is then forgotten."""
        workers, self._workers = self._workers, False
        answers, self._answers = sorted(self._answers), set()
        logs, self._logs = sorted(self._logs), set()
        return [
            *([(CHANNEL, "")] if workers else []),
            *((ANSWER_CHANNEL, " ".join(ids)) for ids in _pieces(answers, _IDS_AT_ONCE)),
            *((LOG_CHANNEL, workspace_id) for workspace_id in logs),
        ]


def _pieces(values: Sequence[_Value], size: int) -> Iterator[Sequence[_Value]]:
    for first in range(0, len(values), size):
        yield values[first : first + size]


async def listen(
    url: str,
    channels: Mapping[str, Callable[[str], None]],
    on_connect: Callable[[], None] = lambda: None,
) -> None:
    """Call the function of a channel with each payload, reconnecting for ever; `url` is libpq's.

    `on_connect` is called whenever the listening begins: what was sent before is lost.
    """
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                # For those that come with an answer to LISTEN.
                connection.add_notify_handler(lambda one: channels[one.channel](one.payload))
                for channel in channels:
                    await connection.execute(f"LISTEN {channel}")
                on_connect()
                await _receive(connection, channels)
        except Exception as error:  # noqa: BLE001  # also a standby, where nobody can listen yet
            reason = type(error).__name__
            log.warning("a listener lost its connection", channels=[*channels], reason=reason)
            await asyncio.sleep(RETRY_SECONDS)


async def _receive(
    connection: psycopg.AsyncConnection, channels: Mapping[str, Callable[[str], None]]
) -> NoReturn:
    """Call the functions of channels for ever. Raises psycopg.OperationalError.

    The driver's `notifies` looks ten times a second; this sleeps until its socket has something.
    """
    loop, server, readable = asyncio.get_running_loop(), connection.pgconn, asyncio.Event()
    socket = connection.fileno()
    loop.add_reader(socket, readable.set)
    try:
        while True:
            server.consume_input()
            while notification := server.notifies():
                channels[notification.relname.decode()](notification.extra.decode())
            await readable.wait()
            readable.clear()
    finally:
        loop.remove_reader(socket)

"""NOTIFY and LISTEN between processes: a commit left work or news.

A worker is notified of new work after a commit: a row of the outbox, an event that an automation
subscribes to, or a run that has ended and so makes room for another. Workers are notified in turn,
since each would query for the work that one has found (ADR 0120). Readers of the log of a workspace
are notified which log has grown, and requests that wait for durable work of its end. All read the
tables then; a lost notification costs a second, because they also read them once a second.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NoReturn, TypeVar
from uuid import UUID

import psycopg
import structlog

log = structlog.get_logger()

_Value = TypeVar("_Value")

CHANNEL = "worker"
"""Of all workers, without a payload. Each has one of its own as well, see `channel_of_worker`."""
WORKER_NAME = "workspace worker"
"""The `application_name` of the connections on which workers listen."""
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
WORKERS_SECONDS = 1.0
"""For this time a process takes the workers to be the same."""


class Notifier:
    """Notifies the other processes: its other methods return at once, `run` sends.

    PostgreSQL takes a database-wide lock when a transaction with a NOTIFY commits. So it is never
    part of the transaction that is announced: one connection of this process sends it afterwards,
    and commits that come close together share one.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._due = asyncio.Event()
        self._worker = self._workers = False
        self._logs: set[str] = set()
        self._answers: set[str] = set()

    def notify(self) -> None:
        """Notify the next worker soon; call it after the commit."""
        self._worker = True
        self._due.set()

    def notify_workers(self) -> None:
        """Notify all workers soon, of what only one of them knows to be for it."""
        self._workers = True
        self._due.set()

    def notify_readers(self, workspace_ids: Collection[str]) -> None:
        """Notify readers of the logs of these workspaces; call it after the commit."""
        self._logs.update(workspace_ids)
        self._due.set()

    def notify_waiters(self, work_ids: Collection[UUID]) -> None:
        """Notify requests that wait for the end of this work; call it after the commit."""
        self._answers.update(map(str, work_ids))
        self._due.set()

    async def run(self) -> None:
        """Send for ever; while the database is away, the others find their work by polling."""
        while True:
            # A lost notification costs a second: all that are notified also poll.
            with contextlib.suppress(psycopg.OperationalError):
                async with await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True
                ) as connection:
                    # A notification takes a transaction ID, so that its commit would be flushed.
                    await connection.execute("SET synchronous_commit = off")
                    await self._send(connection)
            log.warning("the notifier lost its connection")
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, connection: psycopg.AsyncConnection) -> None:
        workers = _Workers(connection)
        while True:
            await self._due.wait()
            # Before the notifications are taken: a later one must lead to another round.
            self._due.clear()
            worker, self._worker = self._worker, False
            first = [(await workers.next_channel(), "")] if worker else []
            for messages in _pieces([*first, *self._taken()], _MOST_AT_ONCE):
                channels, payloads = zip(*messages, strict=True)
                await connection.execute(
                    "SELECT pg_notify(channel, payload)"
                    " FROM unnest(%s::text[], %s::text[]) AS message (channel, payload)",
                    ([*channels], [*payloads]),
                    prepare=True,
                )
            await asyncio.sleep(PAUSE_SECONDS)

    def _taken(self) -> Sequence[tuple[str, str]]:
        """The channels and payloads of all pending notifications, which are then cleared."""
        workers, self._workers = self._workers, False
        answers, self._answers = sorted(self._answers), set()
        logs, self._logs = sorted(self._logs), set()
        return [
            *([(CHANNEL, "")] if workers else []),
            *((ANSWER_CHANNEL, " ".join(ids)) for ids in _pieces(answers, _IDS_AT_ONCE)),
            *((LOG_CHANNEL, workspace_id) for workspace_id in logs),
        ]


class _Workers:
    """The workers that listen, by their connections."""

    def __init__(self, connection: psycopg.AsyncConnection) -> None:
        self._connection = connection
        self._channels: Sequence[str] = ()
        self._until = 0.0
        # A random start, so that processes that begin together do not notify the same worker.
        self._turn = secrets.randbelow(1 << 16)

    async def next_channel(self) -> str:
        """The channel of the worker whose turn it is; of all where none is known."""
        if time.monotonic() >= self._until:
            found = await self._connection.execute(_LISTENING, [WORKER_NAME], prepare=True)
            self._channels = [channel_of_worker(pid) for (pid,) in await found.fetchall()]
            self._until = time.monotonic() + WORKERS_SECONDS
        self._turn += 1
        known = self._channels
        return known[self._turn % len(known)] if known else CHANNEL


_LISTENING = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE application_name = %s AND datname = current_database() ORDER BY pid"
)


def channel_of_worker(backend_pid: int) -> str:
    """The channel of the worker that listens on this connection."""
    return f"{CHANNEL}_{backend_pid}"


def _pieces(values: Sequence[_Value], size: int) -> Iterator[Sequence[_Value]]:
    for first in range(0, len(values), size):
        yield values[first : first + size]


async def listen(
    url: str,
    channels: Mapping[str, Callable[[str], None]],
    on_connect: Callable[[], None] = lambda: None,
) -> None:
    """Call the function of a channel with each payload, reconnecting for ever; `url` is libpq's.

    `on_connect` is called whenever the listening begins: earlier notifications are lost. A listener
    of the channel of all workers is one of them, and takes its turns.
    """
    name = WORKER_NAME if CHANNEL in channels else None
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(
                url, autocommit=True, application_name=name
            ) as connection:
                own = channel_of_worker(connection.info.backend_pid)
                called = {**channels, **({} if name is None else {own: channels[CHANNEL]})}
                await _begin(connection, called)
                # After LISTEN: what was committed between two connections is found by a look at the
                # tables.
                on_connect()
                await _receive(connection, called)
        except Exception as error:  # noqa: BLE001  # also a standby, which accepts no LISTEN yet
            reason = type(error).__name__
            log.warning("a listener lost its connection", channels=[*channels], reason=reason)
            await asyncio.sleep(RETRY_SECONDS)


async def _begin(
    connection: psycopg.AsyncConnection, channels: Mapping[str, Callable[[str], None]]
) -> None:
    """Begin to listen to these channels."""
    # For notifications that arrive with an answer to LISTEN.
    connection.add_notify_handler(lambda one: channels[one.channel](one.payload))
    for channel in channels:
        await connection.execute(f"LISTEN {channel}")


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
            # Before the socket is read, so that bytes that arrive during the read wake the loop
            # again.
            readable.clear()
    finally:
        loop.remove_reader(socket)

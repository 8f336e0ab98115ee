"""Sessions of PostgreSQL: their begin, straight or by a pooler, their notices, their failures."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self
from weakref import WeakKeyDictionary

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from sqlalchemy.engine import AdaptedConnection
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.pool import ConnectionPoolEntry
from typing_extensions import override

# Below the 30 s of an activity: the statement timeout of the database ends first.
LIMITS = {"statement_timeout": "20s", "idle_in_transaction_session_timeout": "1min"}
TIME_ZONE = "UTC"

_STRAIGHT = " ".join(
    f"-c {name}={value}" for name, value in (LIMITS | {"timezone": TIME_ZONE}).items()
)
_PLANNED_ONCE = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"
"""Of connections for single statements. Planning a claim of the outbox takes three times as long as
executing it, so it is planned once for a connection. A plan made while a table is empty would read
all of it later, until statistics are renewed: these statements look rows up by indexes, always."""

KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""A server that the network cut off is noticed after half a minute, in place of two hours."""

Option = Any
"""A parameter of libpq, or an argument of the driver."""

PATIENCE = 10.0
"""Seconds that a unit of work waits while all connections are in use."""
_ANSWER_SECONDS = 2.0
"""For this time after it answered, PostgreSQL is taken to be there."""
_KNOWN_SECONDS = 0.5
"""For this time after a failed attempt to connect, the next one fails at once."""
_FRESH_SECONDS = 0.25
"""A connection that was idle for longer is tried before it is used."""


_WITHOUT_ANSWER = (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)
"""The states of a connection whose last statement has had no answer."""


class DatabaseUnreachableError(psycopg.OperationalError):
    """PostgreSQL does not answer within the time that a process waits for it."""

    retryable = True


class Reach:
    """The patience of a process with PostgreSQL, and the time since which it does not answer."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._failing_since: float | None = None
        self._failed_at = float("-inf")
        self._answered_at = float("-inf")

    @property
    def is_given_up(self) -> bool:
        """True when it has not answered for as long as this process waits."""
        since = self._failing_since
        return since is not None and time.monotonic() >= since + self.patience

    def require_hope(self) -> None:
        """Raise DatabaseUnreachableError when the server is considered unreachable, and was asked a
        moment ago.

        Requests in line then fail at once, in place of one after the other.
        """
        if self.is_given_up and time.monotonic() < self._failed_at + _KNOWN_SECONDS:
            raise DatabaseUnreachableError("PostgreSQL did not answer a moment ago")

    async def wait_for(self, answer: asyncio.Future[Any]) -> None:
        """Wait for an answer of PostgreSQL while it answers other connections.

        Raises DatabaseUnreachableError when it answers none.
        """
        deadline = time.monotonic() + PATIENCE
        while not (await asyncio.wait({answer}, timeout=self.patience))[0]:
            self.fail(self.patience)
            if self.is_given_up or time.monotonic() >= deadline:
                raise DatabaseUnreachableError(
                    f"PostgreSQL did not answer within {self.patience:g} s"
                )

    def fail(self, waited: float = 0) -> None:
        """Note that it did not answer, after a wait of these seconds.

        Where another connection had an answer meanwhile, it is silent since then at the earliest.
        """
        self._failed_at = time.monotonic()
        if self._failing_since is None:
            self._failing_since = max(self._failed_at - waited, self._answered_at)

    def succeed(self) -> None:
        """Note that it answers."""
        self._failing_since = None
        self._answered_at = time.monotonic()

    async def answers(self, connection: psycopg.AsyncConnection[Any]) -> bool:
        """Try a connection; one that does not answer in time is cut off.

        The driver cannot be cancelled: it would wait for the end of the statement.
        """
        trying = asyncio.ensure_future(AsyncConnectionPool.check_connection(connection))
        # Reads the exception, which asyncio would log if this is cancelled before.
        trying.add_done_callback(lambda tried: tried.cancelled() or tried.exception())
        try:
            await asyncio.wait({trying}, timeout=self.patience)
            if not trying.done():
                self.fail(self.patience)
        finally:
            if not trying.done():
                _cut_off(connection)
            await _ended(trying)
        return trying.exception() is None


async def _ended(task: asyncio.Future[Any]) -> None:
    """Wait for the end of a task, also when this is cancelled meanwhile.

    Closing a connection frees memory that the driver reads while a statement is in progress.
    """
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _close_unwanted(opening: asyncio.Task[Any]) -> None:
    """Close a connection that was opened after its caller had stopped waiting."""
    if not opening.cancelled() and opening.exception() is None:
        # At once and without the event loop: no task is left that could await a close.
        opening.result().pgconn.finish()


def _cut_off(connection: psycopg.AsyncConnection[Any]) -> None:
    """End the conversation on this side: the driver then reads the end of the stream."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


class BoundedConnection(psycopg.AsyncConnection[Any]):
    """A connection that is made in a limited time, or not at all."""

    reach: Reach
    _given_back_at = float("inf")

    def give_back(self) -> None:
        """Note the moment: from now on it is idle, and PostgreSQL has answered on it."""
        self._given_back_at = time.monotonic()
        if self.info.transaction_status not in _WITHOUT_ANSWER:
            self.reach.succeed()

    def was_idle(self) -> bool:
        """Say whether it is to be tried before it is used."""
        return time.monotonic() > self._given_back_at + _FRESH_SECONDS

    @classmethod
    @override
    async def connect(cls, conninfo: str = "", *, autocommit: bool = False, **options: Any) -> Self:
        reach: Reach = options.pop("reach")
        reach.require_hope()
        opening = asyncio.ensure_future(cls.opened(conninfo, autocommit=autocommit, **options))
        try:
            await reach.wait_for(opening)
        except BaseException:
            opening.add_done_callback(_close_unwanted)
            opening.cancel()
            raise
        try:
            connection = opening.result()
        except psycopg.OperationalError:
            reach.fail()
            raise
        connection.reach = reach
        reach.succeed()
        return connection

    @classmethod
    async def opened(cls, conninfo: str, *, autocommit: bool, **options: Option) -> Self:
        """A new connection, however long that takes."""
        return await super().connect(conninfo, autocommit=autocommit, **options)

    async def roll_back_keeping_plans(self) -> None:
        """Roll back a transaction that changed no definitions.

        The driver's `rollback` drops all prepared statements, because it cannot know that, and the
        next transactions would plan theirs once more.
        """
        await self.send_command(b"ROLLBACK")

    async def send_command(self, command: bytes) -> None:
        """Send statements that take no parameters and give no rows, in one round trip.

        The driver has no part in it, and sends no BEGIN before it.
        """
        self.pgconn.send_query(command)
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self.pgconn.socket, readable.set)
        refusals = []
        try:
            while True:
                while self.pgconn.is_busy():
                    await readable.wait()
                    readable.clear()
                    self.pgconn.consume_input()
                if (result := self.pgconn.get_result()) is None:
                    break
                if result.status == ExecStatus.FATAL_ERROR:
                    refusals.append(result.error_message)
        finally:
            loop.remove_reader(self.pgconn.socket)
        if refusals:
            raise psycopg.OperationalError(refusals[0].decode(errors="replace"))


class PooledConnection(BoundedConnection):
    """A connection to a pooler.

    The pooler in transaction mode (ADR 0109) gives each transaction any of its sessions. It refuses
    options, keeps no prepared statement, and sets the time limits by itself. The time zone alone it
    carries along, as PostgreSQL reports it.
    """

    @classmethod
    @override
    async def opened(cls, conninfo: str, *, autocommit: bool, **options: Option) -> Self:
        # Outside a transaction, because a rollback would undo the time zone.
        connection = await super().opened(conninfo, autocommit=True, **options)
        try:
            await connection.execute(f"SET TIME ZONE '{TIME_ZONE}'")
            await connection.set_autocommit(autocommit)
        except psycopg.Error:
            await connection.close()
            raise
        return connection


@dataclass(frozen=True, slots=True)
class Sessions:
    """The arguments of connections, and the class of those for single statements."""

    of_engine: Mapping[str, Any]
    of_singles: Mapping[str, Any]
    connection_class: type[BoundedConnection]


STRAIGHT = Sessions(
    {"options": _STRAIGHT},
    {"options": f"{_STRAIGHT} {_PLANNED_ONCE}"},
    BoundedConnection,
)
_UNPREPARED = {"prepare_threshold": None}
POOLED = Sessions(_UNPREPARED, _UNPREPARED, PooledConnection)


@dataclass(frozen=True, slots=True)
class PoolState:
    """The connections of a pool now, and the number of waiting units of work."""

    name: str
    in_use: int
    idle: int
    waiting: int
    most: int


class SinglePool:
    """A pool of connections that each execute one statement by itself."""

    def __init__(
        self,
        connection_class: type[BoundedConnection],
        url: str,
        options: Mapping[str, Any],
        size: int,
        reach: Reach,
    ) -> None:
        self._reach = reach
        self._connect = partial(connection_class.connect, url, **options)
        self._answered_at = float("-inf")
        self._asking: asyncio.Future[None] | None = None
        self._held = 0
        self.pool = AsyncConnectionPool(
            url,
            connection_class=connection_class,
            kwargs=dict(options),
            min_size=0,
            max_size=size,
            # A connection that failed is not tried again before one is needed.
            reconnect_timeout=0,
            open=False,
            configure=watch_changed_logs_of_single,
        )

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[BoundedConnection]:
        """A connection that answers, for one statement."""
        await self.pool.open()
        connection = await self._take()
        self._held += 1
        try:
            async with connection:
                yield connection
        finally:
            self._held -= 1
            connection.give_back()
            await self.pool.putconn(connection)

    async def _take(self) -> BoundedConnection:
        while True:
            connection = await self._pooled()
            answers = False
            try:
                answers = not connection.was_idle() or await self._reach.answers(connection)
            finally:
                if not answers:
                    await self.pool.putconn(connection)
            if answers:
                return connection

    async def _pooled(self) -> BoundedConnection:
        """A connection of the pool; a waiting caller fails when PostgreSQL does not answer."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self._reach.require_hope()
            try:
                return await self.pool.getconn(timeout=self._reach.patience / 8)
            except PoolTimeout:
                try:
                    await self.require_answer(is_open=self._held > 0)
                except psycopg.OperationalError:
                    if self._reach.is_given_up or time.monotonic() >= deadline:
                        raise
                else:
                    return await self.pool.getconn(timeout=PATIENCE)

    async def require_answer(self, *, is_open: bool) -> None:
        """Raise when PostgreSQL does not answer. All waiting callers share one check.

        To a pool that is open it may refuse one connection more, for then it does answer.
        """
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask())
            # Reads the exception, which asyncio would log if all callers were cancelled before.
            self._asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        try:
            # A caller that is cancelled must not end the check that others wait for.
            await asyncio.shield(self._asking)
        except DatabaseUnreachableError:
            raise
        except psycopg.OperationalError:
            if not is_open:
                raise

    async def _ask(self) -> None:
        """Connect once more, unless that succeeded a moment ago."""
        if time.monotonic() > self._answered_at + _ANSWER_SECONDS:
            connection = await self._connect()
            self._answered_at = time.monotonic()
            await connection.close()

    def state(self) -> PoolState:
        """The connections now."""
        statistics = self.pool.get_stats()
        return PoolState(
            name="statements",
            in_use=self._held,
            idle=statistics["pool_available"],
            waiting=statistics["requests_waiting"],
            most=statistics["pool_max"],
        )


_CHANGED = "WS001"
"""SQLSTATE of the notice, whose detail names the workspace."""
_KEY = "changed logs"


class ChangedLogs:
    """The logs that the transaction of one connection has written to so far.

    PostgreSQL says so by a notice, once for each log. The trigger that numbers events raises it, so
    every writer gets it, by any statement. After the commit the process notifies the readers of
    these logs.
    """

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._ids: set[str] = set()
        connection.add_notice_handler(self._on_notice)

    def begin(self) -> None:
        """A transaction begins; what one that was rolled back told of did not happen."""
        self._ids.clear()

    def take(self) -> frozenset[str]:
        """The ids of the workspaces, when it has committed."""
        ids = frozenset(self._ids)
        self._ids.clear()
        return ids

    def _on_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.sqlstate == _CHANGED and notice.message_detail is not None:
            self._ids.add(notice.message_detail)


def watch_changed_logs(connection: AdaptedConnection, record: ConnectionPoolEntry) -> None:
    """Called by an engine with each new connection."""
    record.info[_KEY] = ChangedLogs(connection.driver_connection)


def changed_logs_of(connection: AsyncConnection) -> ChangedLogs:
    """The logs of a connection of an engine that `watch_changed_logs` was called with."""
    logs: ChangedLogs = connection.info[_KEY]
    return logs


_SINGLES: WeakKeyDictionary[psycopg.AsyncConnection[Any], ChangedLogs] = WeakKeyDictionary()


async def watch_changed_logs_of_single(connection: psycopg.AsyncConnection[Any]) -> None:
    """Called by a pool of the driver's own with each new connection."""
    _SINGLES[connection] = ChangedLogs(connection)


def changed_logs_of_single(connection: psycopg.AsyncConnection[Any]) -> ChangedLogs:
    """The logs of a connection that `watch_changed_logs_of_single` was called with."""
    return _SINGLES[connection]


_LOST = frozenset({"57P01", "57P02", "57P03"})
"""The server ends, or does not take connections yet."""
_DISK_FULL = "53100"
_CONFLICTS = frozenset({"40001", "40P01", "55P03", "57014"})
"""A deadlock, or a lock or an answer that took too long."""


def is_connection_lost(error: BaseException) -> bool:
    """Recognize an error that ends the transaction, so that a rollback to a savepoint does not
    help.
    """
    if isinstance(error, PendingRollbackError):
        return True
    cause = _cause(error)
    if not isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return cause.sqlstate is None or cause.sqlstate in _LOST or cause.sqlstate[:2] == "08"


def is_conflict(error: BaseException) -> bool:
    """Recognize that others were in the way: a repetition is likely to succeed."""
    cause = _cause(error)
    return cause is not None and cause.sqlstate in _CONFLICTS


def is_disk_full(error: BaseException) -> bool:
    """Recognize a server without space for the written data."""
    cause = _cause(error)
    return cause is not None and cause.sqlstate == _DISK_FULL


def _cause(error: BaseException) -> psycopg.Error | None:
    origin = error.orig if isinstance(error, DBAPIError) else error
    return origin if isinstance(origin, psycopg.Error) else None

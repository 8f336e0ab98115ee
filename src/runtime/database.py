"""The PostgreSQL engine and its units of work: one transaction per request or activity call.

A request or an activity call commits in `Database.transaction()` or `Database.statement()` alone.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, TypeVar, cast, overload
from uuid import UUID

import psycopg
from psycopg.types.json import set_json_loads
from pydantic import JsonValue
from pydantic_core import from_json
from sqlalchemy import AsyncAdaptedQueuePool, Row, event, select
from sqlalchemy.engine import AdaptedConnection, CursorResult
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql import Executable
from typing_extensions import override

from runtime.clock import truncate, utc_now
from runtime.errors import NotFoundError
from runtime.postgresql import sessions

__all__ = ["Database", "Transaction", "UnitOfWork", "columns_of", "driver_url", "libpq_url"]


@dataclass(frozen=True, slots=True)
class PrefetchedRow:
    """A row that was read ahead (`prefetching`): of which statement, and with which parameters."""

    statement: object
    parameters: Mapping[str, Any]
    row: Any
    """None where there is none."""


class Work(ABC):
    """The work that prepared statements run in; `now` is the same for all of it."""

    def __init__(self) -> None:
        self.now: datetime = utc_now()
        self.answered: set[UUID] = set()
        """Durable work whose end, or answer, is written here: requests that wait for it are
        notified after the commit.
        """
        self.notify_workers = False
        """Set when a worker has something to do after the commit, which then notifies them all."""
        self.prefetched_rows: list[PrefetchedRow] = []
        """Rows that no caller has read yet; the first caller that reads them removes them."""
        self._moments = count()

    def next_moment(self) -> datetime:
        """`now`, and a microsecond later each time: for rows that keep the order of their creation.

        The wire does not show the difference.
        """
        return self.now + timedelta(microseconds=next(self._moments))

    def now_after(self, seconds: float) -> datetime:
        """The moment `seconds` after this work's own."""
        return truncate(self.now + timedelta(seconds=seconds))

    @abstractmethod
    async def driver(self) -> psycopg.AsyncConnection[Any]:
        """The driver's own connection."""

    @abstractmethod
    async def lost(self) -> None:
        """The driver found its connection dead."""


class SingleStatement(Work):
    """One prepared statement, which PostgreSQL itself makes a transaction."""

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], check: Callable[[], Awaitable[None]]
    ) -> None:
        """`check` makes the pool check its other connections."""
        super().__init__()
        self._connection = connection
        self._check = check
        self._used = False

    @override
    async def driver(self) -> psycopg.AsyncConnection[Any]:
        if self._used:
            raise RuntimeError("One statement was announced; use transaction() for several.")
        self._used = True
        return self._connection

    @override
    async def lost(self) -> None:
        """Its pool discards it by itself, and now other connections lost with it."""
        await self._check()


R = TypeVar("R")

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Values for the `bindparam`s of a statement built once; a sequence repeats the statement."""

Single = Callable[[], AbstractAsyncContextManager[SingleStatement]]


class UnitOfWork(Work):
    """One open transaction: what commands and queries take as their first argument."""

    def __init__(self, connection: AsyncConnection | None = None) -> None:
        super().__init__()
        self._connection = connection
        self._driver: psycopg.AsyncConnection[Any] | None = None
        self.after_commit: list[Callable[[], None]] = []
        """Called once the transaction is committed, and never when it is not."""

    @property
    def connection(self) -> AsyncConnection:
        """Its connection, which it has once the first statement was sent."""
        assert self._connection is not None
        return self._connection

    async def get_connection(self) -> AsyncConnection:
        """Its connection, for a statement."""
        return self.connection

    def for_one_statement(self) -> AbstractAsyncContextManager[Work]:
        """The work of one statement that shares a transaction with the others only if all do."""
        return nullcontext(self)

    @override
    async def driver(self) -> psycopg.AsyncConnection[Any]:
        if self._driver is None:
            pooled = await (await self.get_connection()).get_raw_connection()
            driver = pooled.driver_connection
            assert isinstance(driver, psycopg.AsyncConnection)
            self._driver = driver
        return self._driver

    @override
    async def lost(self) -> None:
        self._driver = None
        # SQLAlchemy then finds it dead too, and discards the others of its age.
        await self.connection.execute(select(1))

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """A part of the transaction that is undone alone when the block raises."""
        async with (await self.get_connection()).begin_nested():
            yield

    async def execute(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> CursorResult[Any]:
        """Run a statement; with several parameter sets, once for each."""
        return await (await self.get_connection()).execute(statement, parameters)

    @overload
    async def rows(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Sequence[Row[Any]]: ...

    @overload
    async def rows(
        self, statement: Executable, parameters: Parameters | None = None, *, of: type[R]
    ) -> Sequence[R]: ...

    async def rows(
        self,
        statement: Executable,
        parameters: Parameters | None = None,
        *,
        of: type[R] | None = None,  # noqa: ARG002  # for the type checker
    ) -> Sequence[R]:
        """All rows of a query.

        `of` is a class whose attributes are the columns: the class of a table for all of its
        columns, a Protocol for others. It is for the type checker alone; the rows are SQLAlchemy's.
        """
        rows: Any = (await self.execute(statement, parameters)).all()
        return cast("Sequence[R]", rows)

    @overload
    async def first(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Row[Any] | None: ...

    @overload
    async def first(
        self, statement: Executable, parameters: Parameters | None = None, *, of: type[R]
    ) -> R | None: ...

    async def first(
        self,
        statement: Executable,
        parameters: Parameters | None = None,
        *,
        of: type[R] | None = None,  # noqa: ARG002  # for the type checker
    ) -> R | None:
        """The first row of a query, or None; `of` as in `rows`."""
        row: Any = (await self.execute(statement, parameters)).first()
        return cast("R | None", row)

    @overload
    async def one(self, statement: Executable, resource: str) -> Row[Any]: ...

    @overload
    async def one(self, statement: Executable, resource: str, *, of: type[R]) -> R: ...

    async def one(
        self,
        statement: Executable,
        resource: str,
        *,
        of: type[R] | None = None,  # noqa: ARG002  # for the type checker
    ) -> R:
        """The first row of a query that a caller named as a `resource`; `of` as in `rows`.

        Raises NotFoundError without one.
        """
        row = await self.first(statement)
        if row is None:
            raise NotFoundError(resource)
        return cast("R", row)

    async def scalar(self, statement: Executable, parameters: Parameters | None = None) -> Any:
        """The first column of the first row, or None."""
        return (await self.execute(statement, parameters)).scalar()


class Reading(UnitOfWork):
    """A unit of work that never writes; what it reads was committed, each statement for itself."""

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[AsyncConnection]],
        stack: AsyncExitStack,
        single: Single | None,
    ) -> None:
        """It takes its connection with the first statement; a `single` one needs none of it."""
        super().__init__()
        self._connect = connect
        self._stack = stack
        self._single = single

    @override
    async def get_connection(self) -> AsyncConnection:
        if self._connection is None:
            self._connection = await self._stack.enter_async_context(self._connect())
        return self._connection

    @override
    def for_one_statement(self) -> AbstractAsyncContextManager[Work]:
        return super().for_one_statement() if self._single is None else self._single()

    @override
    async def execute(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> CursorResult[Any]:
        if statement.is_dml:
            raise RuntimeError("A read was announced; use transaction() to write.")
        return await super().execute(statement, parameters)


def parse_stored_json(document: bytes | str) -> JsonValue:
    """The value of a JSON text that PostgreSQL gives."""
    try:
        value: JsonValue = from_json(document)
    except ValueError:
        # It is nested deeper than 200.
        value = json.loads(document)
    return value


set_json_loads(parse_stored_json)

_OVERFLOW = 5
"""Connections beyond the size of the pool, which are closed after use."""


class Transaction(UnitOfWork):
    """A unit of work that writes: one transaction, or several with calls of others between them."""

    def __init__(self, database: "Database", stack: AsyncExitStack) -> None:
        self._database = database
        self._stack = stack

    async def begin(self) -> None:
        """Take a connection, and begin."""
        connection = await self._stack.enter_async_context(self._database.connection())
        # Begun by name, because a prepared statement does not begin it by itself.
        self._transaction = await connection.begin()
        # Each transaction is a unit of work of its own, with its own `now` and callbacks.
        super().__init__(connection)
        self._changes = sessions.changed_logs_of(connection)
        self._changes.begin()

    async def commit(self) -> None:
        """Commit, return the connection, and notify."""
        await self._transaction.commit()
        logs = self._changes.take()
        await self._stack.aclose()
        self._database.notify(self, logs)
        for callback in self.after_commit:
            callback()

    @asynccontextmanager
    async def between_transactions(self) -> AsyncIterator[None]:
        """Commit, and begin again after the block, which holds neither a connection nor a lock.

        `now` is that of the new transaction. A block that raises leaves none open.
        """
        await self.commit()
        yield
        await self.begin()


class Database:
    """A pool of connections to one PostgreSQL database."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        application: str = "workspace",
        pooled: bool = False,
        patience: float = sessions.PATIENCE,
    ) -> None:
        """`pooled` when `url` is that of a pooler in transaction mode (ADR 0109).

        `patience` is the time that PostgreSQL has to answer a new connection.
        """
        self.notify_workers: Callable[[], None] = lambda: None
        """Called after a commit that set `Work.notify_workers`; the process sets it."""
        self.notify_readers: Callable[[Collection[str]], None] = lambda _: None
        """Called after a commit with the workspaces whose logs it wrote to; the process sets it."""
        self.notify_waiters: Callable[[Collection[UUID]], None] = lambda _: None
        """Called after a commit with `Work.answered`; the process sets it."""
        self.connections = pool_size + _OVERFLOW
        """Units of work at once; the next one waits."""
        self._waiting = 0
        self._reach = sessions.Reach(patience)
        options: dict[str, Any] = {
            "application_name": application,
            "connect_timeout": math.ceil(sessions.PATIENCE),
            "reach": self._reach,
            **sessions.KEEPALIVE,
        }
        session = sessions.POOLED if pooled else sessions.STRAIGHT
        connect = {"async_creator_fn": session.connection_class.connect}
        self.engine = _engine(url, pool_size, {**options, **session.of_engine, **connect})
        event.listen(self.engine.sync_engine, "checkout", self._try_idle)
        self._autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._snapshots = self.engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._singles = sessions.SinglePool(
            session.connection_class,
            libpq_url(url),
            {**options, **session.of_singles, "autocommit": True},
            pool_size,
            self._reach,
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Transaction"]:
        """A unit of work that commits when the block ends and rolls back when it raises."""
        async with AsyncExitStack() as connection:
            work = Transaction(self, connection)
            await work.begin()
            yield work
            await work.commit()

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[SingleStatement]:
        """A unit of work of one prepared statement, without the round trips of BEGIN and COMMIT.

        A second statement is refused.
        """
        async with self._singles.connection() as connection:
            changes = sessions.changed_logs_of_single(connection)
            changes.begin()
            work = SingleStatement(connection, self._singles.pool.check)
            yield work
            logs = changes.take()
        self.notify(work, logs)

    def notify(self, work: Work, logs: Collection[str]) -> None:
        """Notify the processes of what a work has committed, and of the `logs` it wrote to."""
        if work.notify_workers:
            self.notify_workers()
        if work.answered:
            self.notify_waiters(work.answered)
        if logs:
            self.notify_readers(logs)

    @property
    def pool(self) -> AsyncAdaptedQueuePool:
        """The connections of units of work."""
        pool = self.engine.pool
        assert isinstance(pool, AsyncAdaptedQueuePool)
        return pool

    @asynccontextmanager
    async def connection(self, engine: AsyncEngine | None = None) -> AsyncIterator[AsyncConnection]:
        """A connection of the engine, or of one that shares its pool."""
        async with AsyncExitStack() as stack:
            self._waiting += 1
            try:
                if self.pool.checkedout() >= self.connections:
                    await self._singles.require_answer(is_open=True)
                connecting = (engine or self.engine).connect()
                connection = await stack.enter_async_context(connecting)
            finally:
                self._waiting -= 1
            yield connection

    def pools(self) -> Sequence[sessions.PoolState]:
        """The connections of this process now: of transactions, and of single statements."""
        transactions = sessions.PoolState(
            name="transactions",
            in_use=self.pool.checkedout(),
            idle=self.pool.checkedin(),
            waiting=self._waiting,
            most=self.connections,
        )
        return [transactions, self._singles.state()]

    def _try_idle(self, connection: AdaptedConnection, *_: object) -> None:
        """Called by the engine before it hands out a connection: one that is lost is replaced."""
        driver: sessions.BoundedConnection = connection.driver_connection
        if driver.was_idle() and not connection.run_async(self._reach.answers):
            raise InvalidatePoolError

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        """A unit of work for reads that need no common snapshot, without BEGIN and COMMIT.

        READ COMMITTED gives every statement its own snapshot inside a transaction too.
        """
        async with AsyncExitStack() as stack:
            yield Reading(partial(self.connection, self._autocommit), stack, self.statement)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[UnitOfWork]:
        """A unit of work for reads that must agree with each other: they have one snapshot."""
        async with AsyncExitStack() as stack:
            yield Reading(partial(self.connection, self._snapshots), stack, None)

    async def close(self) -> None:
        await self._singles.pool.close()
        await self.engine.dispose()


def _engine(url: str, pool_size: int, options: Mapping[str, Any]) -> AsyncEngine:
    """An engine whose connections have these options."""
    engine = create_async_engine(
        driver_url(url),
        pool_size=pool_size,
        max_overflow=_OVERFLOW,
        pool_timeout=sessions.PATIENCE,
        # Errors reach logs and histories, which hold no user data (architecture.md#no-user-data).
        hide_parameters=True,
        connect_args=dict(options),
    )
    event.listen(engine.sync_engine, "connect", sessions.watch_changed_logs)
    event.listen(engine.sync_engine, "checkin", _give_back)
    return engine


def _give_back(connection: AdaptedConnection | None, _: object) -> None:
    """Called by the engine when a connection comes back; one that was lost is none."""
    if connection is not None:
        connection.driver_connection.give_back()


def columns_of(row: object) -> Mapping[str, Any]:
    """The columns of a row by name, regardless of the class that its statement names."""
    return cast("Mapping[str, Any]", cast("Row[Any]", row)._mapping)


def driver_url(url: str) -> str:
    """A libpq URL (`postgres://`, `postgresql://`) with SQLAlchemy's psycopg 3 driver named."""
    for scheme in ("postgres://", "postgresql://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    return url


def libpq_url(url: str) -> str:
    """The same URL as psycopg itself takes it."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)

"""The PostgreSQL engine and its units of work: one transaction per request and per activity call.

A request or an activity call commits in `Database.transaction()` or `Database.statement()` alone.
"""

import math
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, cast
from uuid import UUID

from psycopg.types.json import set_json_loads
from sqlalchemy import AsyncAdaptedQueuePool, Row, event
from sqlalchemy.engine import AdaptedConnection
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from runtime import changed_logs, sessions, stored_json
from runtime.sessions import PATIENCE
from runtime.unit_of_work import Reading, UnitOfWork
from runtime.work import SingleStatement

__all__ = ["Database", "Transaction", "UnitOfWork", "columns_of", "driver_url", "libpq_url"]

set_json_loads(stored_json.parse)

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
        self._changes = changed_logs.of(connection)
        self._changes.begin()

    async def commit(self) -> None:
        """Commit, give the connection back, and tell of it."""
        await self._transaction.commit()
        logs = self._changes.take()
        await self._stack.aclose()
        if self.notify_workers:
            self._database.notify_workers()
        if self.answered:
            self._database.notify_waiters(self.answered)
        if logs:
            self._database.notify_readers(logs)
        for callback in self.after_commit:
            callback()

    @asynccontextmanager
    async def between_transactions(self) -> AsyncIterator[None]:
        """Commit, and begin anew after the block, which holds neither a connection nor a lock.

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
        patience: float = PATIENCE,
    ) -> None:
        """`pooled` when `url` is that of a pooler in transaction mode (ADR 0109).

        `patience` is the time that PostgreSQL has to answer a new connection.
        """
        self.notify_workers: Callable[[], None] = lambda: None
        """Called after a commit that set `UnitOfWork.notify_workers`; the process sets it."""
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
            "connect_timeout": math.ceil(PATIENCE),
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
            changes = changed_logs.of_single(connection)
            changes.begin()
            work = SingleStatement(connection, self._singles.pool.check)
            yield work
            logs = changes.take()
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
        pool_timeout=PATIENCE,
        # Errors reach logs and histories, which hold no user data (promise I8).
        hide_parameters=True,
        connect_args=dict(options),
    )
    event.listen(engine.sync_engine, "connect", changed_logs.watch)
    event.listen(engine.sync_engine, "checkin", _give_back)
    return engine


def _give_back(connection: AdaptedConnection | None, _: object) -> None:
    """Called by the engine when a connection comes back; one that was lost is none."""
    if connection is not None:
        connection.driver_connection.give_back()


def columns_of(row: object) -> Mapping[str, Any]:
    """The columns of a row by name, whatever class its statement says it is."""
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

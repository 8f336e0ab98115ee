"""The PostgreSQL engine and the unit of work: one transaction per request and per activity call.

`Database.transaction()` and `Database.statement()` are the only places that commit.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql import Executable
from typing_extensions import override

from runtime.clock import truncate, utc_now

Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Values for the `bindparam`s of a statement built once; a sequence repeats the statement."""


class UnitOfWork:
    """One open transaction: what commands and queries take as their first argument."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self.now: datetime = utc_now()
        self.wake_outbox = False
        """Set when this transaction wrote to the outbox, so that its commit wakes the relay."""

    def now_after(self, seconds: float) -> datetime:
        """The moment `seconds` after this transaction's own."""
        return truncate(self.now + timedelta(seconds=seconds))

    async def execute(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> CursorResult[Any]:
        """Run a statement; with several parameter sets, once for each."""
        return await self.connection.execute(statement, parameters)

    async def rows(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Sequence[Row[Any]]:
        """All rows of a query."""
        return (await self.execute(statement, parameters)).all()

    async def first(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Row[Any] | None:
        """The first row of a query, or None."""
        return (await self.execute(statement, parameters)).first()

    async def scalar(self, statement: Executable, parameters: Parameters | None = None) -> Any:
        """The first column of the first row, or None."""
        return (await self.execute(statement, parameters)).scalar()


class SingleStatement(UnitOfWork):
    """A unit of work that is over after its first statement."""

    def __init__(self, connection: AsyncConnection) -> None:
        super().__init__(connection)
        self._used = False

    @override
    async def execute(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> CursorResult[Any]:
        if self._used:
            raise RuntimeError("One statement was announced; use transaction() for several.")
        self._used = True
        return await super().execute(statement, parameters)


class Reading(UnitOfWork):
    """A unit of work that never writes; what it reads was committed, each statement for itself."""

    @override
    async def execute(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> CursorResult[Any]:
        if statement.is_dml:
            raise RuntimeError("A read was announced; use transaction() to write.")
        return await super().execute(statement, parameters)


class Database:
    """A pool of connections to one PostgreSQL database."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        application: str = "workspace",
        on_outbox: Callable[[], None] = lambda: None,
    ) -> None:
        self.on_outbox = on_outbox
        self.engine: AsyncEngine = create_async_engine(
            driver_url(url),
            pool_size=pool_size,
            max_overflow=5,
            pool_timeout=10,
            connect_args={
                "application_name": application,
                "options": "-c statement_timeout=60000 -c idle_in_transaction_session_timeout=60000"
                " -c timezone=UTC",
            },
        )
        self._autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[UnitOfWork]:
        """A unit of work that commits when the block ends and rolls back when it raises."""
        async with self.engine.connect() as connection:
            work = UnitOfWork(connection)
            yield work
            await connection.commit()
        if work.wake_outbox:
            self.on_outbox()

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[UnitOfWork]:
        """A unit of work of one statement, which PostgreSQL itself makes a transaction.

        It spares the round trips of BEGIN and COMMIT; a second statement is refused.
        """
        async with self._autocommit.connect() as connection:
            work = SingleStatement(connection)
            yield work
        if work.wake_outbox:
            self.on_outbox()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        """A unit of work for reads that need no common snapshot, without BEGIN and COMMIT.

        READ COMMITTED gives every statement its own snapshot inside a transaction too.
        """
        async with self._autocommit.connect() as connection:
            yield Reading(connection)

    async def close(self) -> None:
        await self.engine.dispose()


def driver_url(url: str) -> str:
    """A libpq URL (`postgres://`, `postgresql://`) with SQLAlchemy's psycopg 3 driver named."""
    for scheme in ("postgres://", "postgresql://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    return url


def libpq_url(url: str) -> str:
    """The same URL as psycopg itself takes it, for connections outside the pool."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)

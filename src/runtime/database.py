"""The PostgreSQL engine and the unit of work: one transaction per request and per activity call.

`Database.transaction()` is the only place in the platform that commits.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql import Executable

from runtime.clock import truncate, utc_now


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
        self, statement: Executable, parameters: Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[Any]:
        """Run a statement that writes; with several parameter sets, once for each."""
        return await self.connection.execute(statement, parameters)

    async def rows(self, statement: Executable) -> Sequence[Row[Any]]:
        """All rows of a query."""
        return (await self.connection.execute(statement)).all()

    async def first(self, statement: Executable) -> Row[Any] | None:
        """The first row of a query, or None."""
        return (await self.connection.execute(statement)).first()

    async def scalar(self, statement: Executable) -> Any:
        """The first column of the first row, or None."""
        return await self.connection.scalar(statement)


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

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[UnitOfWork]:
        """A unit of work that commits when the block ends and rolls back when it raises."""
        async with self.engine.connect() as connection:
            work = UnitOfWork(connection)
            yield work
            await connection.commit()
        if work.wake_outbox:
            self.on_outbox()

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

"""The unit of work: what commands and queries take as their first argument."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any, TypeVar, cast, overload

import psycopg
from sqlalchemy import Row, select
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import Executable
from typing_extensions import override

from runtime.work import SingleStatement, Work

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
        self.notify_workers = False
        """Set when a worker has something to do after the commit, which then notifies them all."""
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

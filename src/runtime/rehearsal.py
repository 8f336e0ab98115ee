"""A database and an object store that keep nothing, to execute work once more.

All units of work are parts of one transaction, which is rolled back.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

import psycopg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection
from typing_extensions import override

from runtime.database import Database, SingleStatement, Transaction, UnitOfWork
from runtime.object_store import ObjectStore
from runtime.postgresql.sessions import BoundedConnection


class _Hold:
    """The right of a task, and of the tasks it starts meanwhile, to use the connection."""

    is_held = True


_hold: ContextVar[_Hold | None] = ContextVar("hold", default=None)


class _Part(Transaction):
    """A transaction that is a savepoint of another one, until its `scope` ends."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._outer = connection
        self.scope = AsyncExitStack()

    @override
    async def begin(self) -> None:
        UnitOfWork.__init__(self, self._outer)
        _ = await self.scope.enter_async_context(self._outer.begin_nested())

    @override
    async def commit(self) -> None:
        await self.scope.aclose()
        self.tell()

    def tell(self) -> None:
        """Call back after the end of the transaction."""
        for callback in self.after_commit:
            callback()


_BEGIN = (
    b"BEGIN; SET LOCAL workspace.dry_run = 'on';"
    b" SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '5s'"
)


class DryRun(Transaction):
    """A transaction that is never committed: it notifies no process and calls no callback.

    Triggers capture the rows that it writes (ADR 0145).
    """

    @override
    async def begin(self) -> None:
        await super().begin()
        driver = await self._own_driver()
        try:
            await driver.send_command(_BEGIN)
        except psycopg.OperationalError:
            if driver.closed:
                await self.lost()
            raise

    @override
    async def commit(self) -> None:
        await self.roll_back()

    async def roll_back(self) -> None:
        """End it, and return the connection."""
        await (await self._own_driver()).roll_back_keeping_plans()
        await self._transaction.rollback()
        self._changes.take()
        await self._stack.aclose()

    async def _own_driver(self) -> BoundedConnection:
        driver = await self.driver()
        assert isinstance(driver, BoundedConnection), "the engine makes such connections"
        return driver


@asynccontextmanager
async def dry_run(database: Database) -> AsyncIterator[DryRun]:
    """A unit of work in which all can be done, and which is rolled back when the block ends."""
    async with AsyncExitStack() as connection:
        work = DryRun(database, connection)
        await work.begin()
        yield work
        await work.roll_back()


class RehearsalDatabase(Database):
    """A database that keeps nothing.

    Units of work of one task may nest. Other tasks wait, as all share a connection, whose
    transaction is rolled back when the database is closed.
    """

    def __init__(self, url: str, *, application: str) -> None:
        super().__init__(url, pool_size=1, application=application)
        self._turn = asyncio.Lock()
        self._connection: AsyncConnection | None = None

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        hold = _hold.get()
        if hold is not None and hold.is_held:
            assert self._connection is not None
            yield self._connection
            return
        async with self._turn:
            hold = _Hold()
            token = _hold.set(hold)
            try:
                yield await self._begun()
            finally:
                hold.is_held = False
                _hold.reset(token)

    async def _begun(self) -> AsyncConnection:
        if self._connection is None:
            self._connection = await self.engine.connect()
            _ = await self._connection.begin()
            # A person in a debugger takes longer.
            idle = sa.text("SET LOCAL idle_in_transaction_session_timeout = 0")
            await self._connection.execute(idle)
        return self._connection

    @override
    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._connected() as connection:
            work = _Part(connection)
            async with work.scope:
                await work.begin()
                yield work
            work.tell()

    @override
    @asynccontextmanager
    async def statement(self) -> AsyncIterator[SingleStatement]:
        async with self._connected() as connection, connection.begin_nested():
            driver = await UnitOfWork(connection).driver()
            yield SingleStatement(driver, _nothing_to_check)

    @override
    @asynccontextmanager
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        async with self._connected() as connection, connection.begin_nested():
            yield UnitOfWork(connection)

    @override
    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[UnitOfWork]:
        async with self.reading() as work:
            yield work

    @override
    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.rollback()
            await self._connection.close()
        await super().close()


async def _nothing_to_check() -> None:
    return


class RehearsalStore(ObjectStore):
    """A store over another one, whose own objects are in a directory of their own."""

    def __init__(self, store: ObjectStore, directory: Path) -> None:
        super().__init__(directory.as_uri())
        self._kept = store

    @override
    async def get(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        store = await self._store_of(key)
        pieces = (
            self._kept.get(key, start, end) if store is not self else super().get(key, start, end)
        )
        async for piece in pieces:
            yield piece

    @override
    async def size(self, key: str) -> int:
        try:
            return await super().size(key)
        except FileNotFoundError:
            return await self._kept.size(key)

    async def _store_of(self, key: str) -> ObjectStore:
        try:
            await super().size(key)
        except FileNotFoundError:
            return self._kept
        return self


@asynccontextmanager
async def rehearsal(
    url: str, store: ObjectStore, *, application: str
) -> AsyncIterator[tuple[RehearsalDatabase, RehearsalStore]]:
    """A database and a store in which all can be done, and nothing is kept."""
    with tempfile.TemporaryDirectory(prefix="workspace-") as directory:
        database = RehearsalDatabase(url, application=application)
        try:
            yield database, RehearsalStore(store, Path(directory))
        finally:
            await database.close()


async def replace_rows(
    work: UnitOfWork, table: sa.Table, condition: sa.ColumnElement[bool], **changed: object
) -> None:
    """Give rows other values, past the triggers that refuse to change what has ended.

    The rows are removed and inserted in one statement, so that what refers to them stays.
    """
    old = sa.delete(table).where(condition).returning(*table.c).cte("old")
    columns = [
        sa.literal(changed[column.name], column.type).label(column.name)
        if column.name in changed
        else old.c[column.name]
        for column in table.c
    ]
    names = [column.name for column in table.c]
    await work.execute(sa.insert(table).from_select(names, sa.select(*columns).select_from(old)))

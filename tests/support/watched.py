"""A Database that notices commits outside its units of work (architecture.md#one-transaction).

It watches the driver's own connections, so that prepared statements and those of the pool for
single statements are seen as well as SQLAlchemy's.
"""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, Self

import psycopg
from psycopg import sql
from sqlalchemy import event
from typing_extensions import override

from runtime.database import Database, SingleStatement, Transaction
from runtime.postgresql.sessions import LIMITS, BoundedConnection
from tests.support.patience import ENOUGH
from tests.support.plans import text_of

_TRANSACTION = re.compile(
    r"\s*(COMMIT|END|BEGIN|START\s+TRANSACTION|PREPARE\s+TRANSACTION)\b", re.IGNORECASE
)
_WRITE = re.compile(
    r"\b(INSERT\s+INTO|UPDATE\s+(ONLY\s+)?[\w.\"]+\s+(AS\s+\w+\s+)?SET|DELETE\s+FROM|MERGE\s+INTO"
    r"|TRUNCATE|CREATE|ALTER|DROP)\b",
    re.IGNORECASE,
)


class _Connection(BoundedConnection):
    """Knows whether it may commit now; records commits that are not allowed."""

    stray_commits: list[str]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.may_commit = False

    @classmethod
    @override
    async def opened(cls, conninfo: str, *, autocommit: bool, **options: Any) -> Self:
        """A connection whose statements and pauses may last as long as a busy machine needs."""
        for limit in LIMITS:
            options["options"] += f" -c {limit}={ENOUGH}s"
        return await super().opened(conninfo, autocommit=autocommit, **options)

    @override
    async def commit(self) -> None:
        open_transaction = self.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE
        if open_transaction and not self.may_commit:
            self.stray_commits.append("a commit outside Database.transaction()")
        await super().commit()

    def watch(self, query: Any) -> None:
        """Note a statement that ends a transaction, or that commits what it writes by itself."""
        text = query.as_string(self) if isinstance(query, sql.Composable) else text_of(query)
        if _TRANSACTION.match(text) or (
            self.autocommit and not self.may_commit and _WRITE.search(text)
        ):
            self.stray_commits.append(text)


def _watched(execute: Callable[..., Any]) -> Callable[..., Any]:
    """A method of cursors that shows a watched connection each statement before it is sent."""

    @wraps(execute)
    async def watched(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(cursor.connection, _Connection):
            cursor.connection.watch(query)
        return await execute(cursor, query, *arguments, **options)

    return watched


# Prepared statements make cursors of a class of their own, which inherits these methods.
for _name in ("execute", "executemany"):
    setattr(psycopg.AsyncCursor, _name, _watched(getattr(psycopg.AsyncCursor, _name)))


class WatchedDatabase(Database):
    """Records every commit that is neither the end of a `transaction()` nor one `statement()`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, pool_size=10, application="tests")
        self.stray_commits: list[str] = []
        watched: Any = type("_Connection", (_Connection,), {"stray_commits": self.stray_commits})

        def connect(_dialect: Any, _record: Any, _: Sequence[Any], options: dict[str, Any]) -> None:
            options["async_creator_fn"] = watched.connect

        event.listen(self.engine.sync_engine, "do_connect", connect)
        self._singles.pool.connection_class = watched

    @asynccontextmanager
    @override
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with super().transaction() as work:
            commit = work.commit

            async def permitted() -> None:
                driver: Any = await work.driver()
                driver.may_commit = True
                try:
                    await commit()
                finally:
                    driver.may_commit = False

            work.commit = permitted  # type: ignore[method-assign]  # of this one alone
            yield work

    @asynccontextmanager
    @override
    async def statement(self) -> AsyncIterator[SingleStatement]:
        async with super().statement() as work:
            connection: Any = work._connection
            connection.may_commit = True
            try:
                yield work
            finally:
                connection.may_commit = False

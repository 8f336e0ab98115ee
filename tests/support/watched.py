"""A Database that notices whoever commits behind its back (promise I1)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Connection, event
from typing_extensions import override

from runtime.database import Database, UnitOfWork

_LEAVE = "may_commit"


class WatchedDatabase(Database):
    """Records every commit that did not come from the end of a `transaction()` block."""

    def __init__(self, url: str) -> None:
        super().__init__(url, pool_size=10, application="tests")
        self.stray_commits: list[str] = []
        event.listen(self.engine.sync_engine, "commit", self._on_commit)
        event.listen(self.engine.sync_engine, "before_cursor_execute", self._on_execute)

    @asynccontextmanager
    @override
    async def transaction(self) -> AsyncIterator[UnitOfWork]:
        leave: dict[Any, Any] = {}
        try:
            async with super().transaction() as work:
                assert work.connection.sync_connection is not None
                leave = work.connection.sync_connection.info
                yield work
                leave[_LEAVE] = True
        finally:
            leave.pop(_LEAVE, None)

    def _on_commit(self, connection: Connection) -> None:
        if not connection.info.pop(_LEAVE, False):
            self.stray_commits.append("a commit outside Database.transaction()")

    def _on_execute(self, _connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().upper().startswith(("COMMIT", "END", "BEGIN", "START TRANSACTION")):
            self.stray_commits.append(statement)

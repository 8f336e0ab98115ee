"""The logs a transaction has written to: PostgreSQL says so by a notice, once for each of them.

The trigger that numbers events raises it, so every writer gets it, whatever they wrote and by which
statement. After the commit the process notifies the readers of these logs.
"""

from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from sqlalchemy.engine import AdaptedConnection
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.pool import ConnectionPoolEntry

_CHANGED = "WS001"
"""SQLSTATE of the notice, whose detail names the workspace."""
_KEY = "changed logs"


class ChangedLogs:
    """The logs that the transaction of one connection has written to so far."""

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


def watch(connection: AdaptedConnection, record: ConnectionPoolEntry) -> None:
    """Called by an engine with each new connection."""
    record.info[_KEY] = ChangedLogs(connection.driver_connection)


def of(connection: AsyncConnection) -> ChangedLogs:
    """The logs of a connection of an engine that `watch` was called with."""
    logs: ChangedLogs = connection.info[_KEY]
    return logs


_SINGLES: WeakKeyDictionary[psycopg.AsyncConnection[Any], ChangedLogs] = WeakKeyDictionary()


async def watch_single(connection: psycopg.AsyncConnection[Any]) -> None:
    """Called by a pool of the driver's own with each new connection."""
    _SINGLES[connection] = ChangedLogs(connection)


def of_single(connection: psycopg.AsyncConnection[Any]) -> ChangedLogs:
    """The logs of a connection that `watch_single` was called with."""
    return _SINGLES[connection]

"""The logs a transaction has written to: PostgreSQL says so by a notice, once for each of them.

The trigger that numbers events raises it, so whoever writes hears of it, whatever they wrote and by
which statement. After the commit the process tells the readers of these logs.
"""

from typing import Any
from weakref import WeakKeyDictionary

import psycopg

_GREW = "WS001"
"""SQLSTATE of the notice, whose detail names the workspace."""
_KEY = "grown logs"


class GrownLogs:
    """The logs that the transaction of one connection has written to so far."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._ids: set[str] = set()
        connection.add_notice_handler(self._on_notice)

    def begin(self) -> None:
        """A transaction begins; what one that was rolled back told of did not happen."""
        self._ids.clear()

    def taken(self) -> frozenset[str]:
        """The ids of the workspaces, when it has committed."""
        taken = frozenset(self._ids)
        self._ids.clear()
        return taken

    def _on_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.sqlstate == _GREW and notice.message_detail is not None:
            self._ids.add(notice.message_detail)


def hear(connection: Any, record: Any) -> None:
    """Called by an engine with each new connection."""
    record.info[_KEY] = GrownLogs(connection.driver_connection)


def grown_logs_of(connection: Any) -> GrownLogs:
    """The logs of a connection of an engine that `hear` was called with."""
    grown: GrownLogs = connection.info[_KEY]
    return grown


_SINGLES: WeakKeyDictionary[psycopg.AsyncConnection[Any], GrownLogs] = WeakKeyDictionary()


async def hear_single(connection: psycopg.AsyncConnection[Any]) -> None:
    """Called by a pool of the driver's own with each new connection."""
    _SINGLES[connection] = GrownLogs(connection)


def grown_logs_of_single(connection: psycopg.AsyncConnection[Any]) -> GrownLogs:
    """The logs of a connection that `hear_single` was called with."""
    return _SINGLES[connection]

"""A query of a MySQL or MariaDB server: in a read-only transaction, row by row as they arrive.

The driver sends one statement at a time, and no file of the worker whatever the server asks for.
"""

import re
import socket
import ssl
from pathlib import Path
from typing import Any

import pymysql
from pymysql.constants import CR, ER
from pymysql.cursors import SSCursor

from activities.sources.databases import query as asked
from activities.sources.databases.query import DatabaseQuery
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem

_CONNECT_SECONDS = 10.0
_EVERYWHERE = re.compile(r"GRANT (.*) ON \*\.\* TO ")
_OF_FILES = frozenset({"FILE", "SUPER", "ALL PRIVILEGES"})
_READ_ONLY = 1792
_TIMED_OUT = frozenset({1317, 1969, 3024})
"""Interrupted; over max_statement_time of MariaDB; over max_execution_time of MySQL."""
_NOT_LET_IN = frozenset({ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, ER.BAD_DB_ERROR, 1698})
_DENIED = frozenset({1142, 1143, 1227, 1370})
"""For a table, a column, what needs a privilege, a routine."""


def fetch(query: DatabaseQuery, path: Path) -> int:
    """Write the rows of a query to a file; gives how many. Raises SourceProblem."""
    connection = _connected(query)
    try:
        with connection:
            return _fetch(connection, query, path)
    except (pymysql.MySQLError, RuntimeError, TypeError) as error:
        raise _problem(query, error) from None


def _connected(query: DatabaseQuery) -> Any:
    address = query.address
    tls: dict[str, Any] = {"ssl_disabled": True}
    if address.tls != "off":
        tls = {"ssl": _context(checked=address.tls == "verified")}
    connection = pymysql.Connection(
        user=address.user,
        password=query.password.encode(),
        host=address.host,
        port=address.port,
        database=address.database,
        charset="utf8mb4",
        cursorclass=SSCursor,
        local_infile=False,
        read_timeout=query.seconds + _CONNECT_SECONDS,
        write_timeout=_CONNECT_SECONDS,
        defer_connect=True,
        **tls,
    )
    opened = _open(query)
    try:
        connection.connect(opened)
    except pymysql.MySQLError as error:
        opened.close()
        denied = error.args[:1] and error.args[0] in _NOT_LET_IN
        raise (asked.not_let_in if denied else asked.unreachable)(query) from None
    return connection


def _context(*, checked: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _open(query: DatabaseQuery) -> socket.socket:
    for address in query.addresses:
        try:
            return socket.create_connection((address, query.address.port), _CONNECT_SECONDS)
        except OSError:
            continue
    raise asked.unreachable(query)


def _fetch(connection: Any, query: DatabaseQuery, path: Path) -> int:
    cursor = connection.cursor()
    try:
        _bound(cursor, query.seconds)
        cursor.execute("SET SESSION time_zone = '+00:00'")
        cursor.execute("START TRANSACTION READ ONLY")
        cursor.execute("SHOW GRANTS")
        if any(_of_files(grant) for (grant,) in cursor.fetchall()):
            raise asked.too_powerful(query)
        cursor.execute(query.text, [*query.params] or None)
        names = [column[0] for column in cursor.description or ()]
        return asked.write_rows(query, names, asked.batches(cursor.fetchmany), path)
    finally:
        # What was not asked for is not read; the driver would read all of it before it closes.
        if cursor._result is not None:
            cursor._result.unbuffered_active = False


def _of_files(grant: str) -> bool:
    """True when a grant, to the user or to a role that is set, is about files of the server."""
    found = _EVERYWHERE.match(grant)
    return found is not None and not _OF_FILES.isdisjoint(found[1].split(", "))


def _bound(cursor: Any, seconds: float) -> None:
    try:
        cursor.execute("SET SESSION max_statement_time = %s", [seconds])
    except pymysql.MySQLError as error:
        if error.args[:1] != (ER.UNKNOWN_SYSTEM_VARIABLE,):
            raise
        cursor.execute("SET SESSION max_execution_time = %s", [round(seconds * 1000)])


def _problem(query: DatabaseQuery, error: Exception) -> SourceProblem:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    message = str(error.args[-1]) if error.args else ""
    if code in _TIMED_OUT:
        return asked.too_slow(query)
    if code == _READ_ONLY:
        return asked.writes()
    if code in _DENIED:
        return asked.refused(query, message, ErrorKind.AUTH)
    if CR.CR_ERROR_FIRST <= code <= CR.CR_ERROR_LAST:
        return asked.broken_off(query)
    if not code and isinstance(error, TypeError | pymysql.ProgrammingError):
        return asked.refused(query, "The params do not fit the %s of the query.")
    if isinstance(error, pymysql.DatabaseError) and code:
        return asked.refused(query, message)
    return asked.broken_off(query)

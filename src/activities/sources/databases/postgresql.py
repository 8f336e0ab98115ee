"""A query of a PostgreSQL server: in a read-only transaction, through a cursor of the server.

A cursor is declared with one query in the extended protocol. So a second statement, COPY, CALL, DO
and writes in WITH are refused by the server's own grammar.
"""

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.types import datetime as moments
from typing_extensions import override

from activities.sources.databases import query as asked
from activities.sources.databases.query import DatabaseQuery
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem

_CONNECT_SECONDS = 10
_SSL_MODES = {"off": "disable", "required": "require", "verified": "verify-full"}
_FILES = """
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_roles
    WHERE rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
      AND pg_catalog.pg_has_role(oid, 'MEMBER')
) OR pg_catalog.current_setting('server_version_num')::int >= 120000 AND EXISTS (
    SELECT FROM pg_catalog.pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace
      AND proname IN ('pg_read_file', 'pg_read_binary_file', 'lo_import', 'lo_export')
      AND pg_catalog.has_function_privilege(oid, 'EXECUTE')
)
"""
"""A superuser is a member of every role. The functions can be granted each by itself; before
PostgreSQL 12 some of them refused by other means, and everybody seems to have the right."""
_ELSEWHERE = """
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_proc
    WHERE probin LIKE '%dblink'
      AND proname IN ('dblink', 'dblink_exec', 'dblink_connect', 'dblink_connect_u')
      AND pg_catalog.has_function_privilege(oid, 'EXECUTE')
)
"""
"""Finds functions that connect to other servers, where a transaction that only reads may write."""
_SETTINGS = {"DateStyle": "ISO, YMD", "TimeZone": "UTC", "lock_timeout": "10s"}
_QUERY_ERRORS = frozenset({"0A", "21", "22", "25", "26", "34", "3D", "3F", "42", "44", "P0"})
"""Classes of errors that another query mends (PostgreSQL, Appendix A)."""


def fetch(query: DatabaseQuery, path: Path) -> int:
    """Write the rows of a query to a file; gives how many. Raises SourceProblem."""
    # What the platform's own database is reached by is none of theirs.
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
    try:
        connection = psycopg.connect(**_parameters(query))
    except psycopg.OperationalError as error:
        let_in = error.pgconn is None or not error.pgconn.used_password
        raise (asked.unreachable if let_in else asked.not_let_in)(query) from None
    try:
        with connection:
            return _fetch(connection, query, path)
    except psycopg.Error as error:
        raise _problem(query, error) from None


def _parameters(query: DatabaseQuery) -> dict[str, Any]:
    address = query.address
    trusted = ssl.get_default_verify_paths().cafile or "system"
    tls_options = {"sslrootcert": trusted} if address.tls == "verified" else {}
    return {
        # The name is what TLS checks; the connection goes to the address that was.
        "host": ",".join([address.host] * len(query.addresses)),
        "hostaddr": ",".join(query.addresses),
        "port": address.port,
        "user": address.user,
        "password": query.password,
        "dbname": address.database,
        "sslmode": _SSL_MODES[address.tls],
        **tls_options,
        "sslcertmode": "disable",
        "gssencmode": "disable",
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "workspace",
    }


def _fetch(connection: psycopg.Connection[Any], query: DatabaseQuery, path: Path) -> int:
    connection.read_only = True
    connection.prepare_threshold = None
    settings = {**_SETTINGS, "statement_timeout": str(round(query.seconds * 1000))}
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, true)", (name, value))
    if _is_so(connection, _FILES):
        raise asked.too_powerful(query)
    if _is_so(connection, _ELSEWHERE):
        raise asked.reaches_elsewhere(query)
    for kind, loader in _LOADERS.items():
        connection.adapters.register_loader(kind, loader)
    with psycopg.RawServerCursor(connection, "source") as cursor:
        cursor.execute(sql.SQL(query.text), query.params or None)
        names = [column.name for column in cursor.description or ()]
        return asked.write_rows(query, names, asked.batches(cursor.fetchmany), path)


def _is_so(connection: psycopg.Connection[Any], question: str) -> bool:
    answer = connection.execute(question).fetchone()
    return answer is None or answer[0]


class _Day(moments.DateLoader):
    @override
    def load(self, data: Any) -> Any:
        return _loaded(super().load, data)


class _Moment(moments.TimestampLoader):
    @override
    def load(self, data: Any) -> Any:
        return _loaded(super().load, data)


class _MomentOfZone(moments.TimestamptzLoader):
    @override
    def load(self, data: Any) -> Any:
        return _loaded(super().load, data)


class _Interval(moments.IntervalLoader):
    @override
    def load(self, data: Any) -> Any:
        return _loaded(super().load, data)


_LOADERS = {"date": _Day, "timestamp": _Moment, "timestamptz": _MomentOfZone, "interval": _Interval}


def _loaded(load: Callable[[Buffer], object], data: Buffer) -> Any:
    """The value; one that Python has no type for, such as infinity, as its text."""
    try:
        return load(data)
    except psycopg.DataError:
        return bytes(data).decode()


def _problem(query: DatabaseQuery, error: psycopg.Error) -> SourceProblem:
    state = error.sqlstate or ""
    message = error.diag.message_primary or ""
    if not state and isinstance(error, psycopg.InternalError):
        # Of libpq, which had no memory for the answer.
        asked.refuse_size("there is memory for")
    if isinstance(error, psycopg.errors.QueryCanceled):
        return asked.too_slow(query)
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return asked.writes()
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return asked.refused(query, message, ErrorKind.AUTH)
    if isinstance(error, psycopg.errors.ProtocolViolation | psycopg.DataError):
        # Too few or too many params are a violation of the protocol.
        return asked.refused(query, message or str(error))
    if state[:2] in _QUERY_ERRORS:
        return asked.refused(query, message)
    return asked.broken_off(query)

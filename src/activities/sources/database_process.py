"""The process that asks one PostgreSQL or MySQL server: read-only, bounded, ended by its parent."""

import json
import math
import os
import re
import resource
import signal
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psycopg
import pymysql
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.types import datetime as moments
from psycopg.types.json import set_json_loads
from psycopg.types.string import TextLoader
from pydantic import JsonValue
from pydantic_core import to_json
from pymysql.constants import CR, ER, FIELD_TYPE
from pymysql.converters import conversions
from pymysql.cursors import SSCursor
from typing_extensions import override

from activities.sources.readers.table import headers_of
from models.sources.connections.providers import ProviderName
from models.sources.tabular.rules.options import ErrorKind, SourceProblem

BATCH = 200
"""Rows that are fetched at a time."""
_QUOTED = 300


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A database of a server, and its login; `tls` is the check of its certificate."""

    provider: ProviderName
    host: str
    port: int
    database: str
    user: str
    tls: str


@dataclass(frozen=True, slots=True)
class DatabaseQuery:
    """One query, whose host has been looked up: only these `addresses` are connected to."""

    address: DatabaseAddress
    password: str = field(repr=False)
    text: str
    params: Sequence[Any]
    seconds: float
    """Of one statement."""
    max_rows: int
    max_bytes: int
    addresses: Sequence[str] = ()
    whole: bool = True
    """True when more rows than that are a problem; else they are left out."""


def write_rows(query: DatabaseQuery, names: Sequence[str], rows: Iterable[Any], path: Path) -> int:
    """Write rows as lines of JSON, and give their number. Raises SourceProblem beyond the bounds.

    A decimal is text, which keeps its digits, and bytes are hexadecimal.
    """
    headers = headers_of(names, len(names))
    size = count = 0
    with path.open("wb") as file:
        for row in rows:
            if count == query.max_rows:
                if not query.whole:
                    break
                refuse_size(f"{query.max_rows:,} rows")
            cells = dict(zip(headers, map(_plain, row), strict=True))
            size += file.write(to_json(cells, inf_nan_mode="null", fallback=str) + b"\n")
            if size > query.max_bytes:
                refuse_size(f"{query.max_bytes // 1024**2} MiB")
            count += 1
    return count


def refuse_size(limit: str) -> NoReturn:
    """Raise what ends a query that gives too much."""
    raise SourceProblem(
        ErrorKind.TOO_LARGE, f"The result of the query is larger than {limit}. Read less data."
    )


def _plain(value: object) -> object:
    """The value as JSON has it; a number that JSON has not is the text of it, such as `NaN`."""
    if isinstance(value, timedelta):
        return _clock(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(Decimal(value))
    return value


def _clock(span: timedelta) -> str:
    """A span of time as `H:MM:SS`, with the parts of a second that it has."""
    minutes, rest = divmod(abs(span), timedelta(minutes=1))
    parts = f".{rest.microseconds:06}".rstrip("0") if rest.microseconds else ""
    sign = "-" if span < timedelta() else ""
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}:{rest.seconds:02}{parts}"


def cursor_rows(fetch: Callable[[int], Sequence[Any]]) -> Iterator[Any]:
    """The rows of a cursor, whose `fetchmany` is given."""
    while rows := fetch(BATCH):
        yield from rows


def unreachable(query: DatabaseQuery) -> SourceProblem:
    """No connection: one message for all reasons, so that it cannot be used to scan ports."""
    host = query.address.host
    message = f"Can't connect to {host}. Check its name, port and TLS settings."
    return SourceProblem(ErrorKind.FETCH, message)


def not_let_in(query: DatabaseQuery) -> SourceProblem:
    """The server answered, and does not let the user into the database."""
    address = query.address
    return SourceProblem(
        ErrorKind.AUTH,
        f"{address.host} denied {address.user} access to {address.database}. Check the user, the"
        " password of the connection and the name of the database.",
    )


def too_powerful(query: DatabaseQuery) -> SourceProblem:
    """A user who could read files of the server with a query."""
    return SourceProblem(
        ErrorKind.AUTH,
        f"The user {query.address.user} can read or write files on the server of the database."
        " Use one that can only read tables.",
    )


def reaches_elsewhere(query: DatabaseQuery) -> SourceProblem:
    """A user who could write, and reach other servers, through the database's server."""
    return SourceProblem(
        ErrorKind.AUTH,
        f"The user {query.address.user} can call dblink, which can write and reach other servers."
        " Revoke EXECUTE on dblink, dblink_exec and dblink_connect from"
        " PUBLIC, or use another user.",
    )


def too_slow(query: DatabaseQuery) -> SourceProblem:
    """A statement that took its time. Another attempt takes it, too."""
    message = f"The query took more than {query.seconds:,.0f} seconds. Read less data."
    return SourceProblem(ErrorKind.TIMEOUT, message, final=True)


def broken_off(query: DatabaseQuery) -> SourceProblem:
    message = f"{query.address.host} returned an incomplete result."
    return SourceProblem(ErrorKind.FETCH, message)


def refused_query(
    query: DatabaseQuery, message: str, kind: ErrorKind = ErrorKind.MAPPING
) -> SourceProblem:
    """A query that the database does not carry out, with what it said of it."""
    words = " ".join(message.replace(query.password, "***").split())[:_QUOTED]
    return SourceProblem(kind, f"The database rejected the query: {words}")


def not_read_only() -> SourceProblem:
    return SourceProblem(ErrorKind.MAPPING, "The query writes data. Data sources are read-only.")


_POSTGRESQL_CONNECT_SECONDS = 10

_SSL_MODES = {"off": "disable", "required": "require", "verified": "verify-full"}

_READS_FILES = """
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
PostgreSQL 12 some of them refused by other means, and everyone seems to have the right."""

_REACHES_ELSEWHERE = """
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_proc
    WHERE probin LIKE '%dblink'
      AND proname IN ('dblink', 'dblink_exec', 'dblink_connect', 'dblink_connect_u')
      AND pg_catalog.has_function_privilege(oid, 'EXECUTE')
)
"""
"""Finds functions that connect to other servers, where a transaction that only reads may write."""
_SETTINGS = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "lock_timeout": "10s",
}
_QUERY_ERRORS = frozenset({"0A", "21", "22", "25", "26", "34", "3D", "3F", "42", "44", "P0"})
"""Classes of errors that another query mends (PostgreSQL, Appendix A)."""


def fetch_from_postgresql(query: DatabaseQuery, path: Path) -> int:
    """Write the rows of a query to a file; returns their number. Raises SourceProblem.

    A cursor is declared with one query in the extended protocol. So a second statement, COPY, CALL,
    DO and writes in WITH are refused by the server's own grammar.
    """
    # The credentials of the platform's own database are not passed on.
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
    try:
        connection = psycopg.connect(**_postgresql_parameters(query))
    except psycopg.OperationalError as error:
        let_in = error.pgconn is None or not error.pgconn.used_password
        raise (unreachable if let_in else not_let_in)(query) from None
    try:
        with connection:
            return _fetch_from_postgresql(connection, query, path)
    except psycopg.Error as error:
        raise _postgresql_problem(query, error) from None
    except UnicodeDecodeError:
        # Of a database without an encoding of its own (SQL_ASCII).
        raise refused_query(query, "A text in the result is not encoded in UTF-8.") from None


def _postgresql_parameters(query: DatabaseQuery) -> dict[str, Any]:
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
        "connect_timeout": _POSTGRESQL_CONNECT_SECONDS,
        "application_name": "workspace",
        "client_encoding": "utf8",
    }


def _fetch_from_postgresql(
    connection: psycopg.Connection[Any], query: DatabaseQuery, path: Path
) -> int:
    connection.read_only = True
    # A pooler between may not keep prepared statements.
    connection.prepare_threshold = None
    settings = {**_SETTINGS, "statement_timeout": str(round(query.seconds * 1000))}
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, true)", (name, value))
    # In the transaction of the query, and before it: such a query would read the files at once.
    if _is_so(connection, _READS_FILES):
        raise too_powerful(query)
    if _is_so(connection, _REACHES_ELSEWHERE):
        raise reaches_elsewhere(query)
    for kind, loader in _LOADERS.items():
        connection.adapters.register_loader(kind, loader)
    set_json_loads(_exact_json, connection)
    with psycopg.RawServerCursor(connection, "source") as cursor:
        cursor.execute(sql.SQL(query.text), query.params or None)
        names = [column.name for column in cursor.description or ()]
        return write_rows(query, names, cursor_rows(cursor.fetchmany), path)


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
        # A month has no length of its own.
        if b"mon" in bytes(data) or b"year" in bytes(data):
            return bytes(data).decode()
        return _loaded(super().load, data)


def _loaded(load: Callable[[Buffer], object], data: Buffer) -> Any:
    """The value; one that Python has no type for, such as infinity, as its text."""
    try:
        return load(data)
    except psycopg.DataError:
        return bytes(data).decode()


_AS_WRITTEN = (
    # 24:00 and offsets with seconds, which Python does not have, and ranges.
    *("time", "timetz"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange"),
    *("tsmultirange", "tstzmultirange"),
)
_LOADERS = {
    "date": _Day,
    "timestamp": _Moment,
    "timestamptz": _MomentOfZone,
    "interval": _Interval,
    **dict.fromkeys(_AS_WRITTEN, TextLoader),
}


def _exact_json(content: str | bytes) -> JsonValue:
    """The value of JSON; a number that no double holds is the text of it."""
    value: JsonValue = json.loads(content, parse_float=_exact_float)
    return value


def _exact_float(written: str) -> float | str:
    number = float(written)
    is_exact = math.isfinite(number) and Decimal(repr(number)) == Decimal(written)
    return number if is_exact else written


def _postgresql_problem(query: DatabaseQuery, error: psycopg.Error) -> SourceProblem:
    state = error.sqlstate or ""
    message = error.diag.message_primary or ""
    if not state and isinstance(error, psycopg.InternalError):
        # Of libpq, which had no memory for the answer.
        refuse_size("there is memory for")
    if isinstance(error, psycopg.errors.QueryCanceled):
        return too_slow(query)
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return not_read_only()
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return refused_query(query, message, ErrorKind.AUTH)
    if isinstance(error, psycopg.errors.ProtocolViolation | psycopg.DataError):
        # Too few or too many params are a violation of the protocol.
        return refused_query(query, message or str(error))
    if state[:2] in _QUERY_ERRORS:
        return refused_query(query, message)
    return broken_off(query)


_MYSQL_CONNECT_SECONDS = 10.0

_MYSQL_GLOBAL_GRANT = re.compile(r"GRANT (.*) ON \*\.\* TO ")

_MYSQL_FILE_PRIVILEGES = frozenset({"FILE", "SUPER", "ALL PRIVILEGES"})

_MYSQL_READ_ONLY = 1792

_MYSQL_TIMED_OUT = frozenset({1317, 1969, 3024})
"""Interrupted; over max_statement_time of MariaDB; over max_execution_time of MySQL."""

_MYSQL_NOT_LET_IN = frozenset(
    {ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, ER.BAD_DB_ERROR, 1698}
)

_MYSQL_DENIED = frozenset({1142, 1143, 1227, 1370})
"""For a table, a column, what needs a privilege, a routine."""


def fetch_from_mysql(query: DatabaseQuery, path: Path) -> int:
    """Write the rows of a query to a file; returns their number. Raises SourceProblem.

    The driver sends one statement at a time. It sends no file of the worker, even if the server
    asks for one.
    """
    connection = _mysql_connection(query)
    try:
        with connection:
            return _fetch_from_mysql(connection, query, path)
    except (pymysql.MySQLError, RuntimeError, TypeError) as error:
        raise _mysql_problem(query, error) from None


def _mysql_connection(query: DatabaseQuery) -> Any:
    address = query.address
    tls: dict[str, Any] = {"ssl_disabled": True}
    if address.tls != "off":
        tls = {"ssl": _tls_context(checked=address.tls == "verified")}
    connection = pymysql.Connection(
        user=address.user,
        password=query.password.encode(),
        host=address.host,
        port=address.port,
        database=address.database,
        charset="utf8mb4",
        # The default cursor would read the whole result into memory.
        cursorclass=SSCursor,
        # A server could otherwise ask for any file of the worker by LOAD DATA LOCAL.
        local_infile=False,
        conv={**conversions, FIELD_TYPE.BIT: int.from_bytes},
        read_timeout=query.seconds + _MYSQL_CONNECT_SECONDS,
        write_timeout=_MYSQL_CONNECT_SECONDS,
        defer_connect=True,
        **tls,
    )
    opened = _open_socket(query)
    try:
        connection.connect(opened)
    except pymysql.MySQLError as error:
        opened.close()
        denied = error.args[:1] and error.args[0] in _MYSQL_NOT_LET_IN
        raise (not_let_in if denied else unreachable)(query) from None
    return connection


def _tls_context(*, checked: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    # The order matters: Python refuses CERT_NONE while host names are checked.
    if not checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _open_socket(query: DatabaseQuery) -> socket.socket:
    for address in query.addresses:
        try:
            return socket.create_connection((address, query.address.port), _MYSQL_CONNECT_SECONDS)
        except OSError:
            continue
    raise unreachable(query)


def _fetch_from_mysql(connection: Any, query: DatabaseQuery, path: Path) -> int:
    cursor = connection.cursor()
    try:
        _bound_mysql_time(cursor, query.seconds)
        cursor.execute("SET SESSION time_zone = '+00:00'")
        cursor.execute("START TRANSACTION READ ONLY")
        cursor.execute("SHOW GRANTS")
        if any(_grants_files(grant) for (grant,) in cursor.fetchall()):
            raise too_powerful(query)
        cursor.execute(query.text, [*query.params] or None)
        names = [column[0] for column in cursor.description or ()]
        return write_rows(query, names, cursor_rows(cursor.fetchmany), path)
    finally:
        # The remaining rows are not read; the driver would read all of them before it closes.
        if cursor._result is not None:
            cursor._result.unbuffered_active = False


def _grants_files(grant: str) -> bool:
    """True when a grant, to the user or to a role that is set, is about files of the server."""
    found = _MYSQL_GLOBAL_GRANT.match(grant)
    return found is not None and not _MYSQL_FILE_PRIVILEGES.isdisjoint(found[1].split(", "))


def _bound_mysql_time(cursor: Any, seconds: float) -> None:
    try:
        cursor.execute("SET SESSION max_statement_time = %s", [seconds])
    except pymysql.MySQLError as error:
        if error.args[:1] != (ER.UNKNOWN_SYSTEM_VARIABLE,):
            raise
        cursor.execute("SET SESSION max_execution_time = %s", [round(seconds * 1000)])


def _mysql_problem(query: DatabaseQuery, error: Exception) -> SourceProblem:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    message = str(error.args[-1]) if error.args else ""
    if code in _MYSQL_TIMED_OUT:
        return too_slow(query)
    if code == _MYSQL_READ_ONLY:
        return not_read_only()
    if code in _MYSQL_DENIED:
        return refused_query(query, message, ErrorKind.AUTH)
    if CR.CR_ERROR_FIRST <= code <= CR.CR_ERROR_LAST:
        return broken_off(query)
    if not code and isinstance(error, TypeError | pymysql.ProgrammingError):
        return refused_query(query, "The params don't match the %s of the query.")
    if isinstance(error, pymysql.DatabaseError) and code:
        return refused_query(query, message)
    return broken_off(query)


_MEMORY = 256 * 1024 * 1024

_FETCHES = {ProviderName.POSTGRESQL: fetch_from_postgresql, ProviderName.MYSQL: fetch_from_mysql}


def answer_query(connection: Connection, query: DatabaseQuery, path: Path) -> None:
    """Write the rows of a query to a file, and send the parent their number or the problem."""
    signal.signal(signal.SIGTERM, _interrupt)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + _MEMORY, held + _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(10)
    try:
        answer: dict[str, object] = {"rows": _FETCHES[query.address.provider](query, path)}
    except KeyboardInterrupt:
        return
    except SourceProblem as problem:
        answer = _problem_fields(problem)
    except MemoryError:
        message = "The result of the query needs too much memory. Read less data."
        answer = _problem_fields(SourceProblem(ErrorKind.TOO_LARGE, message))
    # The parent ends the process after it has read the answer.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    connection.send_bytes(to_json(answer))


def _problem_fields(problem: SourceProblem) -> dict[str, object]:
    return {"kind": problem.kind, "message": problem.message, "final": not problem.retryable}


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Let the driver cancel its statement at the server, which it does when it is interrupted."""
    raise KeyboardInterrupt

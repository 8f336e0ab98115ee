"""The query that every database is asked, and the form in which its rows are written down."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from pydantic_core import to_json

from activities.sources.readers.table import headers_of
from models.sources.connections.providers import ProviderName
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem

BATCH = 200
"""Rows that are fetched at a time."""
_QUOTED = 300


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A database of a server, and who asks it; `tls` is what is asked of its certificate."""

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
    raise SourceProblem(ErrorKind.TOO_LARGE, f"The query gives more than {limit}. Ask for less.")


def _plain(value: object) -> object:
    if isinstance(value, timedelta):
        hours, rest = divmod(round(value.total_seconds()), 3_600)
        return f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    if isinstance(value, bytes | bytearray | memoryview):
        return value.hex()
    return value


def batches(fetch: Callable[[int], Sequence[Any]]) -> Iterator[Any]:
    """The rows of a cursor, whose `fetchmany` is given."""
    while rows := fetch(BATCH):
        yield from rows


def unreachable(query: DatabaseQuery) -> SourceProblem:
    """No connection: one message for all reasons, so that nobody scans ports with it."""
    host = query.address.host
    message = f"No connection to {host}. Check its name, its port and TLS, and that it is up."
    return SourceProblem(ErrorKind.FETCH, message)


def not_let_in(query: DatabaseQuery) -> SourceProblem:
    """The server answered, and does not let the user into the database."""
    address = query.address
    return SourceProblem(
        ErrorKind.AUTH,
        f"{address.host} does not let {address.user} into {address.database}. Check the user, the"
        " password of the connection, and the name of the database.",
    )


def too_powerful(query: DatabaseQuery) -> SourceProblem:
    """A user who could read files of the server with a query."""
    return SourceProblem(
        ErrorKind.AUTH,
        f"The user {query.address.user} may read or write files of the database's server."
        " Name one that may only read tables.",
    )


def reaches_elsewhere(query: DatabaseQuery) -> SourceProblem:
    """A user who could write, and reach other servers, through the database's server."""
    return SourceProblem(
        ErrorKind.AUTH,
        f"The user {query.address.user} may call dblink, by which a query that reads may write, and"
        " reach other servers. Revoke EXECUTE on dblink, dblink_exec and dblink_connect from"
        " PUBLIC, or name a user without it.",
    )


def too_slow(query: DatabaseQuery) -> SourceProblem:
    """A statement that took its time. Another attempt takes it, too."""
    message = f"The query took more than {query.seconds:,.0f} seconds. Ask for less."
    return SourceProblem(ErrorKind.TIMEOUT, message, final=True)


def broken_off(query: DatabaseQuery) -> SourceProblem:
    message = f"{query.address.host} did not answer the query completely."
    return SourceProblem(ErrorKind.FETCH, message)


def refused(
    query: DatabaseQuery, message: str, kind: ErrorKind = ErrorKind.MAPPING
) -> SourceProblem:
    """A query that the database does not carry out, with what it said of it."""
    words = " ".join(message.replace(query.password, "***").split())[:_QUOTED]
    return SourceProblem(kind, f"The database refused the query: {words}")


def writes() -> SourceProblem:
    return SourceProblem(ErrorKind.MAPPING, "The query writes. A data source only reads.")

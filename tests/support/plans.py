"""Statements that the driver executes, and the rows that PostgreSQL reads for them."""

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from runtime.postgresql.sessions import STRAIGHT
from runtime.postgresql.statements import PARAMETER

Statement = tuple[str, Any]
"""The text of a statement, and its parameters: by name, or a list of those with a number."""


def text_of(query: str | bytes) -> str:
    """The text of a statement; prepared ones are sent as bytes."""
    return query if isinstance(query, str) else query.decode()


@contextmanager
def recorded_statements(
    patch: pytest.MonkeyPatch, *, writes: bool = False
) -> Iterator[list[Statement]]:
    """Record the statements that begin with SELECT or WITH, or that write, in the block."""
    words = r"\s*(SELECT|WITH|UPDATE|DELETE)\b" if writes else r"\s*(SELECT|WITH)\b"
    statements: list[Statement] = []
    whole = psycopg.AsyncCursor.execute

    async def execute(self: Any, query: Any, parameters: Any = None, **options: Any) -> Any:
        if isinstance(query, str | bytes) and re.match(words, text_of(query)):
            statements.append((text_of(query), parameters))
        return await whole(self, query, parameters, **options)

    with patch.context() as context:
        context.setattr(psycopg.AsyncCursor, "execute", execute)
        yield statements


async def forget_rows(url: str, condition: str, value: Any, tables: Iterable[str]) -> None:
    """Delete very many rows of a test: they would change the plans of tests after it."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        # Foreign keys and triggers have nothing to say about copies.
        await connection.execute("SET session_replication_role = replica")
        for table in tables:
            await connection.execute(f"DELETE FROM {table} WHERE {condition}", [value])  # noqa: S608  # our own names
            await connection.execute(f"VACUUM ANALYZE {table}")


@asynccontextmanager
async def planning_once(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection that plans as those for single statements do: for all parameters, by indexes."""
    options = STRAIGHT.of_singles["options"]
    connecting = psycopg.AsyncConnection.connect(url, autocommit=True, options=options)
    async with await connecting as connection:
        yield connection


async def prepare(connection: psycopg.AsyncConnection[Any], statement: Statement) -> str:
    """Prepare a statement; gives the one that executes it with its parameters."""
    text, parameters = statement
    await connection.execute(f"PREPARE one AS {numbered_parameters(text)}")
    if not isinstance(parameters, list):
        parameters = [parameters[name] for name in dict.fromkeys(PARAMETER.findall(text))]
    values = [sql.Literal(value) for value in parameters]
    return sql.SQL("EXECUTE one({})").format(sql.SQL(", ").join(values)).as_string(connection)


def numbered_parameters(text: str) -> str:
    """A statement of the driver with its parameters as PREPARE takes them: $1, $2."""
    names = list(dict.fromkeys(PARAMETER.findall(text)))
    return PARAMETER.sub(lambda name: f"${names.index(name[1]) + 1}", text).replace("%%", "%")


def whole_scans(plan: Any, *, limited: bool = False) -> Iterator[str]:
    """The indexes that a plan reads from end to end, unless a limit may end it before.

    A table that it reads without an index stands for itself.
    """
    kind = plan["Node Type"]
    scan = kind in {"Seq Scan", "Index Scan", "Index Only Scan"}
    if scan and "Index Cond" not in plan and not limited:
        yield plan.get("Index Name", plan["Relation Name"])
    limited = kind == "Limit" or (limited and kind not in {"Sort", "Aggregate", "WindowAgg"})
    for part in plan.get("Plans", []):
        yield from whole_scans(part, limited=limited)


async def rows_read(connection: psycopg.AsyncConnection[Any], statement: Statement) -> float:
    """Execute a statement again, and count the rows that its scans look at."""
    text, parameters = statement
    kind = psycopg.AsyncRawCursor if isinstance(parameters, list) else psycopg.AsyncCursor
    cursor = await kind(connection).execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", parameters)
    row = await cursor.fetchone()
    assert row is not None
    return sum(_scanned(row[0][0]["Plan"]))


def _scanned(plan: Any) -> Iterator[float]:
    """The rows that each scan of a plan looks at."""
    if "Relation Name" in plan or "Index Name" in plan:
        removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
        rows = plan["Actual Rows"] + sum(plan.get(name, 0) for name in removed)
        yield rows * plan["Actual Loops"]
    for part in plan.get("Plans", []):
        yield from _scanned(part)

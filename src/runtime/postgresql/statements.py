"""Hot statements, compiled once and sent straight to the driver, and locks by name."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Generic, cast, overload

import psycopg
from psycopg.rows import AsyncRowFactory, namedtuple_row
from psycopg.types.json import Jsonb
from sqlalchemy import ClauseElement, Select, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import NullType, Text
from typing_extensions import TypeVar

from runtime.database import UnitOfWork, Work


@dataclass(frozen=True, slots=True)
class _Compiled:
    text: str
    documents: frozenset[str]
    """The parameters whose column is JSONB."""


R = TypeVar("R", default=Any)

PARAMETER = re.compile(r"%\(([^)]+)\)s")
"""A parameter in the text of a statement, as the driver takes it."""


class PreparedStatement(Generic[R]):
    """A statement whose parameters are named by its `bindparam`s.

    It holds no `IN` list, whose text would depend on its length: compare with `any` of an array.
    `of` names the type of its rows, as in `UnitOfWork.rows`.

    Through SQLAlchemy a small statement costs about three times the processor time the driver alone
    needs. What every request and every node asks is worth the shortcut, nothing else is.
    """

    @overload
    def __init__(self: "PreparedStatement[Any]", statement: ClauseElement) -> None: ...

    @overload
    def __init__(self, statement: ClauseElement, of: type[R]) -> None: ...

    def __init__(self, statement: ClauseElement, of: type[R] | None = None) -> None:  # noqa: ARG002  # for the type of the rows alone
        self._statement = statement

    @cached_property
    def _compiled(self) -> _Compiled:
        compiled = self._statement.compile(dialect=PGDialect_psycopg())  # type: ignore[no-untyped-call]  # SQLAlchemy declares no types
        assert isinstance(compiled, SQLCompiler)
        documents = frozenset(
            str(name) for name, bind in compiled.binds.items() if isinstance(bind.type, JSONB)
        )
        return _Compiled(_with_constants(compiled), documents)

    @property
    def text(self) -> str:
        """The statement as the driver takes it."""
        return self._compiled.text

    @cached_property
    def columns(self) -> Sequence[str]:
        """The names of the columns of a SELECT."""
        assert isinstance(self._statement, Select)
        return self._statement.selected_columns.keys()

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of the parameters."""
        return frozenset(PARAMETER.findall(self.text))

    async def execute(self, work: Work, parameters: Mapping[str, Any]) -> int:
        """Run a statement that gives no rows; the number of rows it changed."""
        cursor = await self._run(work, parameters)
        return cursor.rowcount

    async def rows(self, work: Work, parameters: Mapping[str, Any]) -> Sequence[R]:
        """The rows, with their columns as attributes."""
        cursor = await self._run(work, parameters)
        return cast("Sequence[R]", await cursor.fetchall())

    async def first(self, work: Work, parameters: Mapping[str, Any]) -> R | None:
        """The first row, or None; the one that was read ahead for it, if there is one."""
        for at, ahead in enumerate(work.prefetched_rows):
            if ahead.statement is self and ahead.parameters == parameters:
                del work.prefetched_rows[at]
                return cast("R | None", ahead.row)
        rows = await self.rows(work, parameters)
        return rows[0] if rows else None

    async def _run(self, work: Work, parameters: Mapping[str, Any]) -> psycopg.AsyncCursor[Any]:
        statement = self._compiled
        values = {
            name: _native(value, document=name in statement.documents)
            for name, value in parameters.items()
        }
        return await run_prepared(work, statement.text, values, namedtuple_row)


async def run_prepared(
    work: Work, text: str, parameters: Mapping[str, Any], rows: AsyncRowFactory[Any]
) -> psycopg.AsyncCursor[Any]:
    """Send a statement, which the connection prepares, to the driver."""
    driver = await work.driver()
    cursor: psycopg.AsyncCursor[Any] = driver.cursor(row_factory=rows)
    try:
        # By default the driver prepares a statement at its sixth execution on a connection.
        await cursor.execute(text, parameters, prepare=True)
    except psycopg.OperationalError:
        if driver.closed:
            await work.lost()
        raise
    return cursor


def _with_constants(compiled: SQLCompiler) -> str:
    """The text, with the values that are no parameters written out.

    The planner knows them then also in a plan for all parameters: which partial index holds, and
    that a limit is one row.
    """
    names = {escaped: name for name, escaped in compiled.escaped_bind_names.items()}

    def written(match: re.Match[str]) -> str:
        bind = compiled.binds[names.get(match[1], match[1])]
        if bind.required:
            return match[0]
        value, kind = _native(bind.effective_value, document=False), bind.type
        if isinstance(kind, JSONB) and value is not None:
            value, kind = json.dumps(value), Text()
        elif isinstance(kind, NullType):
            # SQLAlchemy gives the members of an enumeration no type.
            kind = literal(value).type
        return compiled.render_literal_value(value, kind)

    return PARAMETER.sub(written, str(compiled))


def _native(value: object, *, document: bool) -> object:
    """The value for psycopg: documents marked as such, enumerations by value instead of by name."""
    if document:
        return None if value is None else Jsonb(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [item.value if isinstance(item, Enum) else item for item in value]
    return value


async def lock_name(work: UnitOfWork, name: str) -> None:
    """Wait until no other transaction has the lock of a name, and keep it until the commit."""
    # Ends with the transaction, so that a lost process leaves no lock. A collision only waits
    # longer.
    await work.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))

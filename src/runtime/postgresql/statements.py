"""Hot statements, compiled once and sent straight to the driver, rows read ahead, and locks."""

import json
import re
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, Generic, cast, overload

import psycopg
import sqlalchemy as sa
from psycopg.rows import AsyncRowFactory, namedtuple_row, tuple_row
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import NullType, Text
from typing_extensions import TypeVar

from runtime.database import PrefetchedRow, UnitOfWork, Work

R = TypeVar("R", default=Any)

PARAMETER = re.compile(r"%\(([^)]+)\)s")
"""A parameter in the text of a statement, as SQLAlchemy writes it."""


@dataclass(frozen=True, slots=True)
class _RawStatement:
    """A statement as PostgreSQL takes it, and the names of its parameters by their numbers.

    A text with names the driver would parse with each execution, once it is longer than 4,096
    characters.
    """

    text: bytes
    names: Sequence[str]

    @classmethod
    def of(cls, text: str) -> "_RawStatement":
        numbers: dict[str, int] = {}

        def numbered(match: re.Match[str]) -> str:
            return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

        sent = PARAMETER.sub(numbered, text).replace("%%", "%")
        return cls(sent.encode(), tuple(numbers))

    async def run(
        self, work: Work, parameters: Mapping[str, Any], rows: AsyncRowFactory[Any]
    ) -> psycopg.AsyncCursor[Any]:
        """Send it to the driver, whose connection prepares it."""
        driver = await work.driver()
        cursor = psycopg.AsyncRawCursor(driver, row_factory=rows)
        values = [parameters[name] for name in self.names]
        try:
            # By default the driver prepares a statement at its sixth execution on a connection.
            await cursor.execute(self.text, values, prepare=True)
        except psycopg.OperationalError:
            if driver.closed:
                await work.lost()
            raise
        return cursor


@dataclass(frozen=True, slots=True)
class _Compiled:
    text: str
    raw: _RawStatement
    documents: frozenset[str]
    """The parameters whose column is JSONB."""


class PreparedStatement(Generic[R]):
    """A statement whose parameters are named by its `bindparam`s.

    It holds no `IN` list, whose text would depend on its length: compare with `any` of an array.
    `of` names the type of its rows, as in `UnitOfWork.rows`.

    Through SQLAlchemy a small statement costs about three times the processor time the driver alone
    needs. What every request and every node asks is worth the shortcut, nothing else is.
    """

    @overload
    def __init__(self: "PreparedStatement[Any]", statement: sa.ClauseElement) -> None: ...

    @overload
    def __init__(self, statement: sa.ClauseElement, of: type[R]) -> None: ...

    def __init__(self, statement: sa.ClauseElement, of: type[R] | None = None) -> None:  # noqa: ARG002  # for the type of the rows alone
        self._statement = statement

    @cached_property
    def _compiled(self) -> _Compiled:
        compiled = self._statement.compile(dialect=PGDialect_psycopg())  # type: ignore[no-untyped-call]  # SQLAlchemy declares no types
        assert isinstance(compiled, SQLCompiler)
        documents = frozenset(
            str(name) for name, bind in compiled.binds.items() if isinstance(bind.type, JSONB)
        )
        text = _with_constants(compiled)
        return _Compiled(text, _RawStatement.of(text), documents)

    @property
    def text(self) -> str:
        """The statement with the names of its parameters."""
        return self._compiled.text

    @cached_property
    def columns(self) -> Sequence[str]:
        """The names of the columns of a SELECT."""
        assert isinstance(self._statement, sa.Select)
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
        return await statement.raw.run(work, values, namedtuple_row)


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
            kind = sa.literal(value).type
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
    await work.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0))))


L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A statement of at most one row, and the parameters that the leading row does not give."""

    statement: PreparedStatement[Any]
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class LeadingStatement(Generic[L]):
    """A statement of at most one row that others are sent with.

    `values`, and `arrays` of one value, name the parameters of others that columns of its row give.
    The others are asked after it, and in its transaction.
    """

    statement: PreparedStatement[L]
    values: Mapping[str, str]
    arrays: Mapping[str, str]

    async def first(
        self, work: Work, parameters: Mapping[str, Any], prefetches: Sequence[Prefetch]
    ) -> L | None:
        """The first row, or None; `PreparedStatement.first` finds the rows of the others.

        It takes a row only if it asks with the parameters that the row was read with.
        """
        if not prefetches:
            return await self.statement.first(work, parameters)
        joint = _joint(self, tuple(one.statement for one in prefetches))
        sent = dict(parameters)
        for number, prefetch in enumerate(prefetches):
            sent |= {f"{name}_{number}": value for name, value in prefetch.parameters.items()}
        cursor = await joint.raw.run(work, sent, tuple_row)
        rows = await cursor.fetchall()
        if not rows:
            return None
        lead: L
        lead, *others = joint.split(rows[0])
        taken = {name: getattr(lead, column) for name, column in self.values.items()}
        taken |= {name: [getattr(lead, column)] for name, column in self.arrays.items()}
        for prefetch, row in zip(prefetches, others, strict=True):
            statement = prefetch.statement
            led = {name: taken[name] for name in statement.parameters & taken.keys()}
            work.prefetched_rows.append(
                PrefetchedRow(statement, {**prefetch.parameters, **led}, row)
            )
        return lead


class _Joint:
    """One statement for a leading one and others; its row has the columns of all in order."""

    def __init__(
        self, leading: LeadingStatement[Any], others: Sequence[PreparedStatement[Any]]
    ) -> None:
        self._leading = leading
        statements = (leading.statement, *others)
        self._rows: list[Any] = [namedtuple("Row", one.columns) for one in statements]
        parts = [f"SELECT * FROM ({leading.statement.text}) AS lead"]  # noqa: S608  # compiled
        for number, other in enumerate(others):
            following = f"({self._following(other.text, number)}) AS of_{number}"
            # Only an existing row has a value in this column.
            row = f"(SELECT true, of_{number}.* FROM {following}) AS row_{number}"  # noqa: S608  # compiled
            parts.append(f"LEFT JOIN LATERAL {row} ON true")
        self.raw = _RawStatement.of(" ".join(parts))

    def split(self, values: Sequence[Any]) -> list[Any]:
        """The row of each statement; None of one that has none."""
        (lead, *others), at = self._rows, len(self._rows[0]._fields)
        rows: list[Any] = [lead._make(values[:at])]
        for row in others:
            end = at + 1 + len(row._fields)
            rows.append(row._make(values[at + 1 : end]) if values[at] else None)
            at = end
        return rows

    def _following(self, text: str, number: int) -> str:
        leading = self._leading

        def named(match: re.Match[str]) -> str:
            name = match[1]
            if name in leading.values:
                return f"lead.{leading.values[name]}"
            if name in leading.arrays:
                return f"ARRAY[lead.{leading.arrays[name]}]"
            return f"%({name}_{number})s"

        return re.sub(r"%\((\w+)\)s", named, text)


@lru_cache(maxsize=256)
def _joint(leading: LeadingStatement[Any], others: tuple[PreparedStatement[Any], ...]) -> _Joint:
    return _Joint(leading, others)

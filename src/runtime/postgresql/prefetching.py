"""Rows read ahead: by statements that are sent with another one, and take values from its row.

A round trip to PostgreSQL costs the API more than a small statement. What a request is known to ask
next travels with its first statement, and is answered from memory when it is asked.
"""

import re
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from psycopg.rows import tuple_row

from runtime.database import PrefetchedRow, Work
from runtime.postgresql.statements import PreparedStatement, run_prepared

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A statement of at most one row, and the parameters that the leading row does not give."""

    statement: PreparedStatement[Any]
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class LeadingStatement(Generic[R]):
    """A statement of at most one row that others are sent with.

    `values`, and `arrays` of one value, name the parameters of others that columns of its row give.
    The others are asked after it, and in its transaction.
    """

    statement: PreparedStatement[R]
    values: Mapping[str, str]
    arrays: Mapping[str, str]

    async def first(
        self, work: Work, parameters: Mapping[str, Any], prefetches: Sequence[Prefetch]
    ) -> R | None:
        """The first row, or None; `PreparedStatement.first` finds the rows of the others.

        It takes a row only if it asks with the parameters that the row was read with.
        """
        if not prefetches:
            return await self.statement.first(work, parameters)
        joint = _joint(self, tuple(one.statement for one in prefetches))
        sent = dict(parameters)
        for number, prefetch in enumerate(prefetches):
            sent |= {f"{name}_{number}": value for name, value in prefetch.parameters.items()}
        cursor = await run_prepared(work, joint.text, sent, tuple_row)
        rows = await cursor.fetchall()
        if not rows:
            return None
        lead: R
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
        self.text = " ".join(parts)

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

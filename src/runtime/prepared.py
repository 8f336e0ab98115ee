"""Hot reads: a Core SELECT compiled once and sent straight to the driver.

Through SQLAlchemy a small read costs about three times the processor time the driver alone needs.
What every request asks is worth the shortcut, nothing else is. For reads only: SQLAlchemy would
not notice a write, and would not commit it.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row
from sqlalchemy import Select
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from runtime.database import UnitOfWork


class PreparedSelect:
    """A SELECT whose parameters are named by its `bindparam`s."""

    def __init__(self, statement: Select[Any]) -> None:
        self._statement = statement

    @cached_property
    def _compiled(self) -> tuple[str, dict[str, Any]]:
        compiled = self._statement.compile(dialect=PGDialect_psycopg())
        return str(compiled), dict(compiled.params)

    async def rows(self, work: UnitOfWork, parameters: dict[str, Any]) -> Sequence[Any]:
        """The rows, with their columns as attributes."""
        text, constants = self._compiled
        pooled = await work.connection.get_raw_connection()
        driver: Any = pooled.driver_connection
        try:
            cursor = driver.cursor(row_factory=namedtuple_row)
            await cursor.execute(text, {**constants, **parameters}, prepare=True)
            rows: Sequence[Any] = await cursor.fetchall()
        except psycopg.OperationalError:
            if not driver.closed:
                raise
            # SQLAlchemy then finds the connection dead, and discards the others of its age too.
            return (await work.connection.execute(self._statement, parameters)).all()
        return rows

    async def first(self, work: UnitOfWork, parameters: dict[str, Any]) -> Any | None:
        """The first row, or None."""
        rows = await self.rows(work, parameters)
        return rows[0] if rows else None

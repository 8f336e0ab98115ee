"""Deleting rows with all rows that belong to them, a bounded number at a time.

What belongs to a row is found by following foreign keys, so a new table needs no line here. A
referring row is deleted first when its key is not nullable, cascades, or names an item; otherwise
its key is set to null.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from runtime.database import UnitOfWork
from runtime.postgresql.schema import BELONGS_TO, metadata

MAX_ROWS = 5_000
"""Rows that one call removes or changes."""
MAX_HEADS = 500
"""Rows that one call removes with all that is theirs."""

_OWNING = "item_id"
"""A key of this name makes a row its item's, even where it may be null."""


async def purge(
    work: UnitOfWork,
    table: sa.Table,
    old: sa.Select[Any],
    limit: int = MAX_ROWS,
    heads_at_once: int = MAX_HEADS,
) -> int:
    """Remove the rows whose ids `old` selects, the first of them first, with all that is theirs.

    Returns the number of rows removed or changed, at most `limit`; repeat until 0. Rows that
    another transaction holds are left for a later call.
    """
    rows = await work.rows(old.limit(heads_at_once).with_for_update(skip_locked=True))
    if not rows:
        return 0
    removal = _Removal(work, limit)
    heads = sa.literal([row.id for row in rows], sa.ARRAY(sa.Uuid))
    await removal.remove(table, table.c.id == sa.any_(heads))
    return limit - removal.left


@dataclass(eq=False, slots=True)
class Retention:
    """The removal of rows of a table whose `moment` is past and that meet the `conditions`.

    A call removes a batch from before a moment, which is now unless given, with all that belongs to
    the rows, the first by `order` first. It returns the number of removed rows, at most `limit`;
    call it until that is 0.
    """

    table: sa.Table
    moment: sa.ColumnElement[Any]
    conditions: tuple[sa.ColumnElement[bool], ...] = ()
    order: tuple[sa.ColumnElement[Any], ...] = ()

    async def __call__(
        self, work: UnitOfWork, before: datetime | None = None, limit: int = MAX_ROWS
    ) -> int:
        key = self.table.primary_key.columns
        past = self.moment < (before or work.now)
        old = (
            sa.select(*key).where(past, *self.conditions).order_by(*(self.order or (self.moment,)))
        )
        if any(_references(self.table)) or any(_unbound(self.table)):
            return await purge(work, self.table, old, limit)
        # Rows that another transaction holds are left for a later call.
        batch = old.limit(limit).with_for_update(skip_locked=True)
        return (
            await work.execute(sa.delete(self.table).where(sa.tuple_(*key).in_(batch)))
        ).rowcount


class _Removal:
    """Deletes rows after the rows that refer to them, up to a number of rows."""

    def __init__(self, work: UnitOfWork, limit: int) -> None:
        self._work = work
        self.left = limit

    async def remove(
        self,
        table: sa.Table,
        condition: sa.ColumnElement[bool],
        above: frozenset[str] = frozenset(),
    ) -> None:
        """Remove the rows of a condition; `above` are the tables this came from."""
        for referring, key in _references(table):
            if referring.name in above | {table.name}:
                continue
            named = sa.select(*(element.column for element in key.elements)).where(condition)
            theirs = sa.tuple_(*key.columns).in_(named)
            if is_owned(key):
                await self.remove(referring, theirs, above | {table.name})
            else:
                columns = {column.name: None for column in key.columns if column.nullable}
                await self._change(referring, theirs, sa.update(referring).values(columns))
        for unbound, naming in _unbound(table):
            # A workspace is its own.
            workspace_id = table.c.get("workspace_id", table.c.id)
            theirs = sa.tuple_(*naming).in_(sa.select(workspace_id, table.c.id).where(condition))
            await self._change(unbound, theirs, sa.delete(unbound))
        await self._change(table, condition, sa.delete(table))

    async def _change(
        self, table: sa.Table, condition: sa.ColumnElement[bool], change: sa.Update | sa.Delete
    ) -> None:
        if not self.left:
            return
        row: sa.ColumnElement[Any] = sa.literal_column(f"{table.name}.ctid")
        some = sa.select(row).select_from(table).where(condition).limit(self.left).correlate(None)
        changed = await self._work.execute(change.where(row.in_(some)))
        self.left -= changed.rowcount


def _references(table: sa.Table) -> Iterator[tuple[sa.Table, sa.ForeignKeyConstraint]]:
    for referring in metadata.sorted_tables:
        for key in referring.foreign_key_constraints:
            if key.referred_table is table:
                yield referring, key


def _unbound(table: sa.Table) -> Iterator[tuple[sa.Table, list[sa.Column[Any]]]]:
    """Tables that declare their rows as belonging to a table, and the columns that name it."""
    for other in metadata.sorted_tables:
        declared = other.info.get(BELONGS_TO, {})
        if table.name in declared:
            yield other, [other.c[name] for name in declared[table.name]]


def is_owned(key: sa.ForeignKeyConstraint) -> bool:
    """True when a row belongs to the one that its key names, and goes with it."""
    if key.ondelete is not None:
        return key.ondelete == "CASCADE"
    names = {column.name for column in key.columns}
    return _OWNING in names or not any(column.nullable for column in key.columns)

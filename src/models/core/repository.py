"""Rows of plain resources, listed, found, added, changed and deleted alike; many rows in one write.

A resource with rules of its own checks them before it calls these, and shows a row by its shape.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from models.core.access.rules import Actor
from models.core.base import Deleted, Id
from models.core.pagination import Page, PageRequest
from models.core.values import next_updated_at
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.postgresql.statements import lock_name

_COUNTED_BITS = 32
"""Bits of an id that count the rows; 42 random ones stay."""


async def first_id(work: UnitOfWork) -> int:
    """The first of very many ids, from the database's clock; the others count on from it.

    PostgreSQL asks for random bits for each UUIDv7, which takes it longer than to write the row.
    """
    made: Id = await work.scalar(sa.select(sa.func.uuidv7(type_=sa.Uuid)))
    return made.int >> _COUNTED_BITS << _COUNTED_BITS


def counted_id(first: int, number: sa.ColumnElement[int]) -> sa.ColumnElement[Any]:
    """The id of the row with this number, which begins with 1."""
    content = first.to_bytes(16)
    head = sa.literal(content[:8], sa.LargeBinary)
    tail = sa.literal(int.from_bytes(content[8:], signed=True), sa.BigInteger)
    counted = head.concat(sa.func.int8send(tail + number))
    return sa.cast(sa.func.encode(counted, "hex"), sa.Uuid)


def numbered_id() -> sa.ColumnElement[Any]:
    """The id of each row of a statement, in the order in which it comes."""
    first = sa.select(sa.func.uuid_send(sa.func.uuidv7())).scalar_subquery()
    number = sa.cast(sa.func.row_number().over(), sa.Integer)
    counted = sa.func.substring(first, 1, 12).concat(sa.func.int4send(number))
    return sa.cast(sa.func.encode(counted, "hex"), sa.Uuid)


def copying_rows(
    table: sa.Table,
    values: Mapping[str, sa.ColumnElement[Any]],
    condition: Sequence[sa.ColumnElement[bool]],
) -> sa.Insert:
    """The statement that inserts copies of rows, with all columns but `values` as they are."""
    columns = [values.get(column.name, column) for column in table.c]
    names = [column.name for column in table.c]
    rows = sa.select(*columns).where(*condition)
    return sa.insert(table).from_select(names, rows, include_defaults=False)


async def update_rows(
    work: UnitOfWork, table: sa.Table, changes: Sequence[tuple[Id, Mapping[str, object]]]
) -> None:
    """Write the same columns of the rows with these ids."""
    values = [{"this": row_id, **new} for row_id, new in changes]
    if values:
        names = [name for name in values[0] if name != "this"]
        await work.execute(
            sa.update(table)
            .where(table.c.id == sa.bindparam("this"))
            .values({name: sa.bindparam(name) for name in names}),
            values,
        )


def first_rows_of_each(
    ids: Collection[Id], own: Callable[[sa.ColumnElement[Id]], sa.Select[Any]]
) -> sa.Select[Any]:
    """The rows that `own` selects of each id, in one statement.

    Where they are ordered and limited, the past of one owner is not read for another's.
    """
    each = sa.select(sa.func.unnest(sa.literal([*ids], sa.ARRAY(sa.Uuid))).label("id")).subquery(
        "each"
    )
    line = own(each.c.id).correlate(each).lateral("line")
    return sa.select(line).select_from(each.join(line, sa.true()))


Row = TypeVar("Row")


@dataclass(eq=False, slots=True)
class Bound:
    """The most rows of a table that an owner may have (architecture.md#bounds).

    The columns `by` name the owner, which is the platform without any. Rows count that meet the
    `conditions`.
    """

    table: sa.Table
    most: int
    resources: str
    by: tuple[str, ...] = ("workspace_id",)
    conditions: tuple[sa.ColumnElement[bool], ...] = ()
    remedy: str = "Delete some first."

    @asynccontextmanager
    async def place(self, work: UnitOfWork, *owner: object) -> AsyncIterator[None]:
        """Let the block write a row of an owner, and refuse it when there are then too many.

        A block that replaces a row adds none, and passes. Raises ConflictError.
        """
        # Two requests of one owner must not both take the last place: one waits for the other.
        await lock_name(work, "/".join(map(str, (self.table.name, *owner))))
        yield
        columns = zip(self.by, owner, strict=True)
        theirs = (self.table.c[name].is_not_distinct_from(value) for name, value in columns)
        count = sa.select(sa.func.count()).select_from(self.table).where(*theirs, *self.conditions)
        if await work.scalar(count) > self.most:
            raise ConflictError(
                f"The limit of {self.most:,} {self.resources} is reached. {self.remedy}".rstrip()
            )


@dataclass(eq=False, slots=True)
class Repository(Generic[Row]):
    """The rows of a table that belong to workspaces.

    A caller sees the rows of the workspace that meet the conditions of `sees`, and does not find
    others. A list is in the `order` of these columns, or newest first.
    """

    resource: str
    table: sa.Table
    row: type[Row]
    sees: Callable[[Actor], Sequence[sa.ColumnElement[bool]]] = lambda _: ()
    limit: Bound | None = None
    order: Sequence[str] = ()

    def seen(self, actor: Actor) -> Sequence[sa.ColumnElement[bool]]:
        """The conditions on the rows that a caller sees."""
        return self.table.c.workspace_id == actor.workspace_id, *self.sees(actor)

    async def page(
        self, work: UnitOfWork, actor: Actor, page: PageRequest, *which: sa.ColumnElement[bool]
    ) -> Page[Row]:
        """A page of the rows that a caller sees."""
        rows, columns = sa.select(self.table).where(*self.seen(actor), *which), self.table.c
        if self.order:
            order = [columns[name] for name in self.order]
            return await page.ascending(work, rows, *order, of=self.row)
        return await page.descending(work, rows, columns.created_at, columns.id, of=self.row)

    async def find(self, work: UnitOfWork, actor: Actor, row_id: Id, *, lock: bool = False) -> Row:
        """A row, locked until the transaction ends if asked for. Raises NotFoundError."""
        statement = sa.select(self.table).where(*self.seen(actor), self.table.c.id == row_id)
        return await work.one(
            statement.with_for_update() if lock else statement, self.resource, of=self.row
        )

    async def add(
        self, work: UnitOfWork, actor: Actor, row_id: Id, values: Mapping[str, object]
    ) -> Row:
        """Insert a row. Raises ConflictError beyond the bound of its owner."""
        moments = {"created_at": work.now, "updated_at": work.now}
        row = {"id": row_id, "workspace_id": actor.workspace_id, **moments, **values}
        statement = sa.insert(self.table).values(row).returning(self.table)
        if self.limit is None:
            return await work.one(statement, self.resource, of=self.row)
        async with self.limit.place(work, *(row[name] for name in self.limit.by)):
            return await work.one(statement, self.resource, of=self.row)

    async def change(
        self, work: UnitOfWork, actor: Actor, row_id: Id, values: Mapping[str, object]
    ) -> Row:
        """Set columns of a row, which then has another `updated_at`. Raises NotFoundError."""
        moment = next_updated_at(self.table.c.updated_at, work.now)
        statement = (
            sa.update(self.table)
            .where(*self.seen(actor), self.table.c.id == row_id)
            .values(updated_at=moment, **values)
            .returning(self.table)
        )
        return await work.one(statement, self.resource, of=self.row)

    async def delete(self, work: UnitOfWork, actor: Actor, row_id: Id) -> Deleted:
        """Delete a row. Raises NotFoundError."""
        this = sa.delete(self.table).where(*self.seen(actor), self.table.c.id == row_id)
        await work.one(this.returning(self.table.c.id), self.resource)
        return Deleted(id=row_id)

"""Plain resources of a workspace: their rows are listed, found, added, changed and deleted alike.

A resource with rules of its own checks them before it calls these, and shows a row by its shape.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import sqlalchemy as sa

from models.core.access.rules import Actor
from models.core.base import Deleted, Id
from models.core.pagination import Page, PageRequest
from models.core.values import next_updated_at
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.postgresql.statements import lock_name

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

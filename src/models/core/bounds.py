"""Bounds on the rows that an owner may have, and on the work that a workspace has open.

Of each family of work there are two: what is over the first waits in the outbox, what is over the
second is refused.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

import sqlalchemy as sa

from models.core.access.rules import Actor, PrincipalType
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, RateLimitedError
from runtime.postgresql.statements import lock_name
from runtime.temporal.families import Family

RUNNING: Mapping[Family, int] = {
    family: family.bounds.running for family in Family if family.bounds.running is not None
}
OPEN: Mapping[Family, int] = {
    family: family.bounds.open for family in Family if family.bounds.open is not None
}


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


class TooMuchOpenError(RateLimitedError):
    """The limit of open work of a kind is reached."""

    advice = "Wait until one has ended, or cancel one."
    headers: ClassVar[dict[str, str]] = {"Retry-After": "10"}

    def __init__(self, family: Family, bound: int) -> None:
        super().__init__(
            f"The limit of {bound:,} open executions ({family.value.replace('-', ' ')}) is reached."
            " Wait until one has ended, or cancel one."
        )


async def require_place(
    work: UnitOfWork, actor: Actor, kind: WorkTable, family: Family, *which: sa.ColumnElement[bool]
) -> None:
    """Refuse what was just accepted, when more of its family is open than may be.

    `which` rows of the table are of the family. What the platform does by itself waits instead.
    Raises `TooMuchOpenError`, and then nothing may be committed.
    """
    if actor.principal.type is not PrincipalType.SYSTEM:
        of_workspace = kind.table.c.workspace_id == actor.workspace_id
        await require_place_of(work, actor.workspace_id, kind, family, of_workspace, *which)


async def require_place_of(
    work: UnitOfWork, owner: Id, kind: WorkTable, family: Family, *which: sa.ColumnElement[bool]
) -> None:
    """As `require_place`, for `which` rows of an owner."""
    limit = OPEN.get(family)
    if limit is None:
        return
    # One after the other, so that the next one counts this one, too.
    place = f"open/{family}/{owner}"
    await lock_name(work, place)
    some = sa.select(kind.table.c.id).where(kind.is_open, *which).limit(limit + 1).subquery()
    if await work.scalar(sa.select(sa.func.count()).select_from(some)) > limit:
        raise TooMuchOpenError(family, limit)

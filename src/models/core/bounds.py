"""Bounds on the rows that an owner may have, and on the work that a workspace has open.

Of each family of work there are two: what is over the first waits in the outbox, what is over the
second is refused.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import ClassVar

from sqlalchemy import ColumnElement, Table, func, select

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


@asynccontextmanager
async def bounded(
    work: UnitOfWork,
    table: Table,
    *counted: ColumnElement[bool],
    owner: object,
    most: int,
    refusal: str,
) -> AsyncIterator[None]:
    """Let the block write a row, and refuse it when there are then more than `most`.

    `counted` says which rows of the table count; `owner` names whose they are. Two requests of one
    owner must not both take the last place, so each waits for the other's commit. A block that
    replaces a row adds none, and passes. Raises ConflictError with the text `refusal`.
    """
    await lock_name(work, f"{table.name}/{owner}")
    yield
    if await work.scalar(select(func.count()).select_from(table).where(*counted)) > most:
        raise ConflictError(refusal)


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
    work: UnitOfWork, actor: Actor, kind: WorkTable, family: Family, *which: ColumnElement[bool]
) -> None:
    """Refuse what was just accepted, when more of its family is open than may be.

    `which` rows of the table are of the family. What the platform does by itself waits instead.
    Raises `TooMuchOpenError`, and then nothing may be committed.
    """
    if actor.principal.type is not PrincipalType.SYSTEM:
        of_workspace = kind.table.c.workspace_id == actor.workspace_id
        await require_place_of(work, actor.workspace_id, kind, family, of_workspace, *which)


async def require_place_of(
    work: UnitOfWork, owner: Id, kind: WorkTable, family: Family, *which: ColumnElement[bool]
) -> None:
    """As `require_place`, for `which` rows of an owner."""
    limit = OPEN.get(family)
    if limit is None:
        return
    # One after the other, so that the next one counts this one, too.
    place = f"open/{family}/{owner}"
    await lock_name(work, place)
    some = select(kind.table.c.id).where(kind.is_open, *which).limit(limit + 1).subquery()
    if await work.scalar(select(func.count()).select_from(some)) > limit:
        raise TooMuchOpenError(family, limit)

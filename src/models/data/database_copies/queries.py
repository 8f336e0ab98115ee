"""Reading what is copied and what became of a copy, and the rights to copy it."""

from typing import Protocol

from models.content.items.commands import check_parent
from models.content.items.joins import ITEM
from models.core.access.rules import Actor, Level, Scope, level_on
from models.core.base import Id, Input, JsonObject
from models.data.database_copies.rules import outward
from models.data.databases.queries import get_database
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.queries import visible as visible_database
from models.data.fields.rows import DATABASE, live_databases
from models.data.fields.rules.fields import FieldSpecs
from models.messages.jobs.store import succeeded_job
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError
from runtime.temporal.families import Family


class DuplicateDatabase(Input):
    """Body of duplicate database; without `includeRecords` the copy is empty."""

    include_records: bool = False


class SourceDatabase(Protocol):
    """A database that is copied, with columns of its item."""

    label: str
    description: str | None
    settings: JsonObject
    record_layout: JsonObject
    next_number: int
    parent_item_id: Id | None
    icon: str | None
    color: str | None
    access_mode: str
    item_metadata: JsonObject


async def find_source(work: UnitOfWork, workspace_id: Id, database_id: Id) -> SourceDatabase:
    """A database with columns of its item. Raises `NotFoundError`."""
    return await work.one(
        live_databases(
            workspace_id,
            *DATABASE,
            *(ITEM[name] for name in ("parent_item_id", "icon", "color", "access_mode")),
            ITEM.metadata.label("item_metadata"),
        ).where(DATABASE.id == database_id),
        "database",
        of=SourceDatabase,
    )


async def copy_outcome(
    work: UnitOfWork, actor: Actor, copy_id: Id, *, last: bool
) -> DatabaseDetail | None:
    """The copy when it is complete, None while it is not.

    Raises `ConflictError` when it failed, `InProgressError` when this is the last time to ask.
    """
    job = await succeeded_job(
        work,
        actor.workspace_id,
        Family.DATABASE_DUPLICATE,
        copy_id,
        failed="The copy failed and was removed.",
        in_progress=_STILL_COPYING if last else None,
    )
    return None if job is None else await get_database(work, actor, copy_id)


_STILL_COPYING = "The database is still being copied. Repeat the same request for the outcome."

_DATABASE = frozenset({Scope.DATABASES_READ, Scope.DATABASES_WRITE})
_RECORDS = frozenset({Scope.RECORDS_READ, Scope.RECORDS_WRITE})


def check_copy_scopes(actor: Actor, *, with_records: bool) -> None:
    """Raise `DeniedError` unless the actor may read what is copied, and write what is made of it.

    Nobody reads by copying what their credential keeps them from.
    """
    missing = sorted((_DATABASE | _RECORDS if with_records else _DATABASE) - actor.scopes)
    if missing:
        raise DeniedError(f"The credential lacks the scope {' and '.join(missing)}.")


async def parent_of_copy(work: UnitOfWork, actor: Actor, source: SourceDatabase) -> Id | None:
    """The parent of a copy: the source's, or None, the root, for an actor who may not create there.

    Raises `DeniedError` for an actor who may create nothing at the root either.
    """
    try:
        await check_parent(work, actor, source.parent_item_id)
    except (NotFoundError, DeniedError):
        await check_parent(work, actor, None)
        return None
    return source.parent_item_id


async def closed_targets(
    work: UnitOfWork, actor: Actor, source_id: Id, fields: FieldSpecs
) -> set[Id]:
    """The databases that these relations point into and the actor does not edit.

    Copied, such a relation would add its other side to them.
    """
    closed = set()
    for target_id in sorted({spec.target_id for spec in outward(fields, source_id)}):
        place = await visible_database(work, [actor.workspace_id], target_id, actor.user_id)
        if place is not None and level_on(place, actor.role) < Level.EDIT:
            closed.add(target_id)
    return closed


async def check_relation_targets(
    work: UnitOfWork, actor: Actor, source_id: Id, fields: FieldSpecs
) -> None:
    """Raise `DeniedError` for a relation into a database the actor does not edit any more."""
    if await closed_targets(work, actor, source_id, fields):
        raise DeniedError("You no longer have edit access to a related database.")

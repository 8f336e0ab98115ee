"""Reading what is copied, and what became of a copy."""

from typing import Protocol

from models.content.items.joins import ITEM
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.databases.queries import get_database
from models.data.databases.shapes import DatabaseDetail
from models.data.fields.joins import DATABASE, live_databases
from models.messages.jobs.queries import succeeded_job
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.families import Family


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
    row = await work.first(
        live_databases(
            workspace_id,
            *DATABASE,
            *(ITEM[name] for name in ("parent_item_id", "icon", "color", "access_mode")),
            ITEM.metadata.label("item_metadata"),
        ).where(DATABASE.id == database_id),
        of=SourceDatabase,
    )
    if row is None:
        raise NotFoundError("database")
    return row


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
        failed="The copy could not be made; nothing of it is left.",
        in_progress=_STILL_COPYING if last else None,
    )
    return None if job is None else await get_database(work, actor, copy_id)


_STILL_COPYING = (
    "The database is still being copied; the copy is seen when it is whole. Repeat the same"
    " request for the outcome."
)

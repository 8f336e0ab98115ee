"""Accepting copies of databases."""

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.database_copies.access import check_copy_scopes, parent_of_copy
from models.data.database_copies.queries import find_source
from models.data.database_copies.shapes import DuplicateDatabase
from models.messages.jobs.commands import accept_job
from runtime.database import UnitOfWork
from runtime.families import Family


async def accept_copy(
    work: UnitOfWork, actor: Actor, database_id: Id, copy_id: Id, body: DuplicateDatabase
) -> None:
    """Accept the job that makes the copy `copy_id`; nothing happens when it is accepted already.

    Raises `NotFoundError` for the database, `DeniedError` for an actor who may create nothing at
    the root, or lacks a scope for what is copied.
    """
    check_copy_scopes(actor, with_records=body.include_records)
    await parent_of_copy(work, actor, await find_source(work, actor.workspace_id, database_id))
    await accept_job(
        work,
        actor,
        Family.DATABASE_DUPLICATE,
        copy_id,
        database_id,
        summary="Duplicate a database with its records"
        if body.include_records
        else "Duplicate a database",
        input={"includeRecords": body.include_records},
    )

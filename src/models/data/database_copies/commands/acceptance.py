"""Accepting copies of databases."""

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.database_copies.access import check_relation_targets, parent_of_copy
from models.data.database_copies.queries import find_source
from models.data.database_copies.shapes import DuplicateDatabase
from models.data.databases.queries import load_schema
from models.messages.jobs.commands import accept_job
from runtime.database import UnitOfWork
from runtime.families import Family


async def accept_copy(
    work: UnitOfWork, actor: Actor, database_id: Id, copy_id: Id, body: DuplicateDatabase
) -> None:
    """Accept the job that makes the copy `copy_id`; nothing happens when it is accepted already.

    Raises `NotFoundError` for the database, `DeniedError` for an actor who may create nothing at
    the root, or does not edit a database that would get the other side of a relation.
    """
    schema = await load_schema(work, actor.workspace_id, database_id)
    await parent_of_copy(work, actor, await find_source(work, actor.workspace_id, database_id))
    await check_relation_targets(work, actor, database_id, schema.fields)
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

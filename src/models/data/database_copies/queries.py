"""What became of a copy that was asked for."""

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.queries import get_database
from models.data.databases.shapes import DatabaseDetail
from models.messages.jobs.queries import find_job
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError
from runtime.families import Family


async def copy_outcome(
    work: UnitOfWork, actor: Actor, copy_id: Id, *, last: bool
) -> DatabaseDetail | None:
    """The copy when it is whole, None while it is not.

    Raises `ConflictError` when it failed, `InProgressError` when this is the last time to ask.
    """
    found = await find_job(work, actor.workspace_id, Family.DATABASE_DUPLICATE, copy_id)
    if found.status == JobStatus.SUCCEEDED:
        return await get_database(work, actor, copy_id)
    if found.status not in OPEN_JOB:
        raise ConflictError(found.error or "The copy could not be made; nothing of it is left.")
    if last:
        raise InProgressError(
            "The database is still being copied; the copy is seen when it is whole. Repeat the"
            " request with the same Idempotency-Key for the outcome."
        )
    return None

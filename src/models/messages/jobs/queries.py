"""Reading jobs."""

from sqlalchemy import Uuid, bindparam, select

from models.core.access.rules import Actor, Principal, PrincipalType, Role
from models.core.base import Id
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.tables import Job, job
from models.people.workspaces.tables import workspace_member
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, InProgressError, NotFoundError
from runtime.families import Family
from runtime.prepared_statement import PreparedStatement

_JOB = PreparedStatement(
    select(job).where(
        job.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        job.c.id == bindparam("id", type_=Uuid),
        job.c.family == bindparam("family"),
    ),
    Job,
)


async def find_job(work: UnitOfWork, workspace_id: Id, family: Family, job_id: Id) -> Job:
    """One job of a family. Raises `NotFoundError`."""
    parameters = {"workspace_id": workspace_id, "id": job_id, "family": family.value}
    found = await _JOB.first(work, parameters)
    if found is None:
        raise NotFoundError(family.value.replace("-", " "))
    return found


async def succeeded_job(
    work: UnitOfWork,
    workspace_id: Id,
    family: Family,
    job_id: Id,
    *,
    failed: str,
    in_progress: str | None,
) -> Job | None:
    """A job that has succeeded, None while it is open.

    Raises `NotFoundError`, `ConflictError` with the job's error, or else `failed`, when it ended
    otherwise, and `InProgressError` with `in_progress`, when given, while it is open.
    """
    found = await find_job(work, workspace_id, family, job_id)
    if found.status == JobStatus.SUCCEEDED:
        return found
    if found.status not in OPEN_JOB:
        raise ConflictError(found.error or failed)
    if in_progress is not None:
        raise InProgressError(in_progress)
    return None


async def job_actor(work: UnitOfWork, job: Job) -> Actor:
    """Who asked for a job (its row), with the rights they have now; the job writes in their name.

    Raises `DeniedError` for one who left the workspace.
    """
    role = await work.scalar(
        select(workspace_member.c.role).where(
            workspace_member.c.workspace_id == job.workspace_id,
            workspace_member.c.user_id == job.actor_user_id,
        )
    )
    if role is None:
        raise DeniedError("Whoever asked for this is no member of the workspace any more.")
    principal = Principal(type=PrincipalType.SYSTEM, id=job.id, user_id=job.actor_user_id)
    return Actor(
        principal=principal,
        workspace_id=job.workspace_id,
        role=Role(role),
        scopes=principal.effective_scopes(Role(role)),
    )

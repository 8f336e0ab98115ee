"""Reading jobs."""

from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Select, Uuid, bindparam, select

from models.core.access.rules import Actor, Principal, PrincipalType
from models.core.base import Id
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.tables import JOBS, job
from models.people.members import role_of
from runtime.database import UnitOfWork
from runtime.errors import (
    ConflictError,
    DeniedError,
    InProgressError,
    InvalidError,
    NotFoundError,
    PlatformError,
    UnsupportedError,
    UpstreamError,
    ValidationError,
)
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.families import Family


class JobRow(Protocol):
    """A job: `input` is what was asked for, `progress` where the next chunk begins."""

    id: Id
    workspace_id: Id
    family: str
    subject_id: Id
    actor_user_id: Id
    status: str
    input: dict[str, Any]
    progress: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None
    error_code: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None


_JOB = PreparedStatement(
    select(job).where(
        job.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        job.c.id == bindparam("id", type_=Uuid),
        job.c.family == bindparam("family"),
    ),
    JobRow,
)

JOB = job.c
"""The columns of jobs in `jobs_of`."""


def jobs_of(workspace_id: Id, family: Family, *columns: ColumnElement[Any]) -> Select[Any]:
    """These columns of the jobs of a family in a workspace, closed ones too."""
    return select(*columns).where(job.c.workspace_id == workspace_id, job.c.family == family.value)


async def find_job(work: UnitOfWork, workspace_id: Id, family: Family, job_id: Id) -> JobRow:
    """One job of a family. Raises `NotFoundError`."""
    parameters = {"workspace_id": workspace_id, "id": job_id, "family": family.value}
    found = await _JOB.first(work, parameters)
    if found is None:
        raise NotFoundError(family.value.replace("-", " "))
    return found


async def own_job(work: UnitOfWork, actor: Actor, family: Family, job_id: Id) -> JobRow:
    """One job that the actor has asked for. Raises `NotFoundError`, also for the job of another."""
    job = await find_job(work, actor.workspace_id, family, job_id)
    if job.actor_user_id != actor.user_id:
        raise NotFoundError(family.value.replace("-", " "))
    return job


async def open_job(work: UnitOfWork, workspace_id: Id, family: Family) -> JobRow | None:
    """The oldest open job of a family of which a workspace has one at a time."""
    statement = jobs_of(workspace_id, family, *JOB).where(JOBS.is_open)
    return await work.first(statement.order_by(job.c.id).limit(1), of=JobRow)


async def succeeded_job(
    work: UnitOfWork,
    workspace_id: Id,
    family: Family,
    job_id: Id,
    *,
    failed: str,
    in_progress: str | None,
) -> JobRow | None:
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


async def job_actor(work: UnitOfWork, job: JobRow) -> Actor:
    """The asker of a job (its row), with the rights they have now; the job writes in their name.

    Raises `DeniedError` for one who left the workspace.
    """
    role = await role_of(work, job.workspace_id, job.actor_user_id)
    if role is None:
        raise DeniedError("The requester is no longer a member of the workspace.")
    principal = Principal(type=PrincipalType.SYSTEM, id=job.id, user_id=job.actor_user_id)
    return Actor(
        principal=principal,
        workspace_id=job.workspace_id,
        role=role,
        scopes=principal.effective_scopes(role),
    )


def refusal_of(job: JobRow) -> PlatformError | None:
    """The refusal of a job (its row), as it was raised; None for one that was lost."""
    for refusal in _REFUSALS:
        if refusal.code == job.error_code:
            made = refusal.__new__(refusal)  # some say their sentence themselves
            PlatformError.__init__(made, job.error or "")
            return made
    return None


_REFUSALS: tuple[type[PlatformError], ...] = (
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    UnsupportedError,
    UpstreamError,
    ValidationError,
)

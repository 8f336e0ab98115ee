"""Reading jobs."""

from typing import Any

from sqlalchemy import Uuid, bindparam, select

from models.core.access.rules import Actor, Principal, PrincipalType, Role
from models.core.base import Id
from models.messages.jobs.tables import job
from models.people.workspaces.tables import workspace_member
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError
from runtime.families import Family
from runtime.prepared_statement import PreparedStatement

_JOB = PreparedStatement(
    select(job).where(
        job.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        job.c.id == bindparam("id", type_=Uuid),
        job.c.family == bindparam("family"),
    )
)


async def find_job(work: UnitOfWork, workspace_id: Id, family: Family, job_id: Id) -> Any:
    """One job of a family, with the columns of its table. Raises `NotFoundError`."""
    parameters = {"workspace_id": workspace_id, "id": job_id, "family": family.value}
    found = await _JOB.first(work, parameters)
    if found is None:
        raise NotFoundError(family.value.replace("-", " "))
    return found


async def job_actor(work: UnitOfWork, job: Any) -> Actor:
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

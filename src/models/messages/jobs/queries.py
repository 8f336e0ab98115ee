"""Reading jobs."""

from typing import Any

from sqlalchemy import Uuid, bindparam, select

from models.core.base import Id
from models.messages.jobs.tables import job
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
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

"""Computing many records anew: asked for in the writer's transaction, done by a job in chunks."""

from collections.abc import Collection

from sqlalchemy import any_, select

from models.core.access.rules import Actor, Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from models.data.records.queries.links import id_array, relation_side, seen_links
from models.data.records.rules.write.computed_order import Stale
from models.data.records.tables import record
from models.messages.jobs.commands import accept_job
from models.messages.jobs.queries import JOB, jobs_of
from models.messages.jobs.rows import JobRow
from models.messages.jobs.rules import JobStatus
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.ids import new_id

CHUNK = 500
"""Records of one chunk."""

NO_USER = Id(int=0)
"""Stands for the user where the platform asks by itself."""


async def request_recomputation(
    work: UnitOfWork,
    workspace_id: Id,
    stale: Stale,
    *,
    through: Id | None = None,
    user_id: Id = NO_USER,
) -> None:
    """Accept a job that computes these fields of these records.

    Without record ids it computes all records of the database; with `through`, the records that
    this relation field links to them. A job of the same that has not begun does both.
    """
    request = {
        "keys": sorted(stale.keys),
        "recordIds": sorted(map(str, stale.record_ids)),
        "through": None if through is None else str(through),
    }
    queued_job = await work.first(
        jobs_of(workspace_id, Family.RECOMPUTATION, JOB.id)
        .where(
            JOB.subject_id == stale.database_id,
            JOB.status == JobStatus.QUEUED.value,
            JOB.input == request,
        )
        .limit(1)
        # Held, so that it does not begin before this transaction ends.
        .with_for_update(skip_locked=True)
    )
    if queued_job is None:
        await accept_job(
            work,
            _system(workspace_id, user_id),
            Family.RECOMPUTATION,
            new_id(),
            stale.database_id,
            summary="Compute values anew",
            input=request,
        )


def _system(workspace_id: Id, user_id: Id) -> Actor:
    """The platform itself: it computes for whoever may read."""
    principal = Principal(type=PrincipalType.SYSTEM, id=user_id, user_id=user_id)
    return Actor(principal=principal, workspace_id=workspace_id, role=Role.OWNER)


async def next_stale(work: UnitOfWork, job: JobRow) -> Stale | None:
    """The next records of a held job, in the order of their ids; None when none are left."""
    request: JsonObject = job.input
    after = Id(job.progress["after"]) if job.progress else None
    ids = [Id(each) for each in request["recordIds"]]
    through = request["through"]
    if through is None:
        record_ids = await _own(work, job, ids, after)
    else:
        record_ids = await _linked(work, job, Id(through), ids, after)
    return Stale(job.subject_id, record_ids, request["keys"]) if record_ids else None


async def _own(work: UnitOfWork, job: JobRow, ids: Collection[Id], after: Id | None) -> list[Id]:
    statement = (
        select(record.c.id)
        .where(
            record.c.workspace_id == job.workspace_id,
            record.c.database_id == job.subject_id,
        )
        .order_by(record.c.id)
        .limit(CHUNK)
    )
    if ids:
        statement = statement.where(record.c.id == any_(id_array(ids)))
    if after is not None:
        statement = statement.where(record.c.id > after)
    return [row.id for row in await work.rows(statement)]


async def _linked(
    work: UnitOfWork, job: JobRow, relation_id: Id, ids: Collection[Id], after: Id | None
) -> list[Id]:
    side = await relation_side(work, job.workspace_id, relation_id)
    if side is None:
        return []
    seen = seen_links(job.workspace_id, [side], None, id_array(ids)).subquery("seen")
    statement = select(seen.c.own).distinct().order_by(seen.c.own).limit(CHUNK)
    if after is not None:
        statement = statement.where(seen.c.own > after)
    return [row.own for row in await work.rows(statement)]

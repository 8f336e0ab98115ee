"""Removing a field, and by a job its values from the records."""

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.problems import an
from models.data.databases.commands.field_usages import remove_usages
from models.data.databases.commands.layouts import remove_from_layout
from models.data.fields.commands import delete_field_row, forget_removed, remember_removed
from models.data.fields.queries import find_removed
from models.data.fields.rules.fields import FieldSpec
from models.data.formulas.rules.derived_fields import FieldRef
from models.data.records.commands.stored_values import strip_values
from models.messages.jobs.commands import accept_job
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork
from runtime.families import Family


async def remove_field(
    work: UnitOfWork, actor: Actor, ref: FieldRef, spec: FieldSpec, job_id: Id
) -> None:
    """Remove a field and its values, many values by a job; the caller holds the schema lock."""
    workspace_id, database_id = actor.workspace_id, ref.database_id
    await remove_usages(work, workspace_id, database_id, spec.key)
    await remove_from_layout(work, workspace_id, database_id, spec.key)
    await delete_field_row(work, workspace_id, spec.id)
    if not (spec.stored or spec.computed):
        return
    last = await strip_values(
        work, workspace_id, database_id, spec.key, None, computed=spec.computed
    )
    if last is None:
        return
    await remember_removed(work, workspace_id, database_id, spec)
    await accept_job(
        work,
        actor,
        Family.FIELD_REMOVAL,
        job_id,
        spec.id,
        summary=f"Remove the values of {an(spec.kind)} field",
        input={"computed": spec.computed, "after": str(last)},
    )


async def remove_chunk(work: UnitOfWork, job: JobRow) -> JsonObject | None:
    """Remove the values from more records; gives the progress to continue from, None at the end."""
    row = await find_removed(work, job.workspace_id, job.subject_id)
    if row is None:
        return None
    after = Id(job.progress.get("after", job.input["after"]))
    last = await strip_values(
        work,
        job.workspace_id,
        row.database_id,
        row.key,
        after,
        computed=job.input["computed"],
    )
    if last is not None:
        return {"after": str(last)}
    await forget_removed(work, job.workspace_id, job.subject_id)
    return None

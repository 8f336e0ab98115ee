"""New records from templates: their values, their links and what stands on their surface."""

from collections.abc import Sequence

from models.content.surfaces.commands.surfaces import copy_to_records
from models.core.access.rules import Actor
from models.data.fields.rules.fields import Schema
from models.data.records.prefills import prefills_of
from models.data.records.rules.write.writes import Planned, Write, WriteOp
from runtime.database import UnitOfWork


async def with_templates(
    work: UnitOfWork, schema: Schema, writes: Sequence[Write]
) -> Sequence[Write]:
    """The writes with what their templates prefill below what they say themselves.

    A template serves what makes a new record. Raises `NotFoundError` for one that the database
    does not have.
    """
    wanted = {write.template_id for write in writes if write.template_id is not None}
    if not wanted:
        return writes
    prefills = await prefills_of(work, schema.workspace_id, schema.database_id, wanted)
    filled: list[Write] = []
    for write in writes:
        if write.template_id is None or write.op is not WriteOp.CREATE:
            filled.append(write)
            continue
        prefill = prefills[write.template_id]
        filled.append(
            write._replace(
                data={**prefill.data, **write.data},
                relations={**prefill.relations, **write.relations},
                content_from=prefill.content_surface_id,
            )
        )
    return filled


async def copy_contents(
    work: UnitOfWork, actor: Actor, schema: Schema, new: Sequence[Planned]
) -> None:
    """Give new records the content of their templates."""
    copies = [
        (one.content_from, one.after.content_surface_id, one.after.id)
        for one in new
        if one.content_from is not None and one.after.content_surface_id is not None
    ]
    if copies:
        await copy_to_records(work, actor, schema.database_id, copies)

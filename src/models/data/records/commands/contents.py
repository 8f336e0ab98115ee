"""Opening the content of a record: a surface of its own, made when it is first opened."""

from sqlalchemy import select, update

from models.content.surfaces.commands.surfaces import create_content_surface
from models.content.surfaces.queries import detail, find_surface
from models.content.surfaces.shapes import SurfaceDetail
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.data.records.queries.records import this_record
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def content_surface(work: UnitOfWork, actor: Actor, record_id: Id) -> SurfaceDetail:
    """The content of a record with its blocks, made if it has none. Raises `NotFoundError`."""
    surface_id = await _surface_of(work, actor, record_id)
    found = await find_surface(work, actor, surface_id, Scope.SURFACES_WRITE)
    return await detail(work, actor, found)


async def _surface_of(work: UnitOfWork, actor: Actor, record_id: Id) -> Id:
    """The surface that a record names; the record is locked until it names one.

    Raises `NotFoundError`.
    """
    conditions = this_record(actor.workspace_id, record_id)
    row = await work.first(
        select(record.c.database_id, record.c.content_surface_id)
        .where(*conditions)
        .with_for_update(key_share=True)
    )
    if row is None:
        raise NotFoundError("record")
    if row.content_surface_id is not None:
        existing: Id = row.content_surface_id
        return existing
    made = await create_content_surface(work, actor, row.database_id, record_id)
    await work.execute(update(record).where(*conditions).values(content_surface_id=made))
    return made

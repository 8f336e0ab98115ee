"""The placement of a record that may be in the trash, and of the content of a record."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Uuid, bindparam, func, literal, or_, select

from models.content.items.queries import PlacementOf
from models.content.surfaces.queries import placement_of_surfaces
from models.data.fields.joins import DATABASE, item_of_database, placed_databases
from models.data.records.queries.records import this_record
from models.data.records.rules.write.writes import TRASH
from models.data.records.tables import record

restorable = PlacementOf(
    placed_databases()
    .join(record, record.c.database_id == DATABASE.id)
    .where(
        record.c.id == bindparam("id", type_=Uuid),
        record.c.workspace_id == DATABASE.workspace_id,
        or_(record.c.deleted_at.is_(None), record.c.deleted_at > func.now() - literal(TRASH)),
    )
)
"""The placement of the database of a record that can be restored, or need not be."""


def _item_of_content(surface: FromClause) -> ColumnElement[Any]:
    """The item of the database that a content belongs to; null while its record is in the trash."""
    live = select(record.c.id).where(*this_record(surface.c.workspace_id, surface.c.record_id))
    return (
        item_of_database(surface.c.workspace_id, surface.c.database_id)
        .where(or_(surface.c.record_id.is_(None), live.correlate_except(record).exists()))
        .scalar_subquery()
    )


visible_surface = placement_of_surfaces(_item_of_content)
"""The placement of a surface, a record's content with its database: `await visible_surface(…)`."""

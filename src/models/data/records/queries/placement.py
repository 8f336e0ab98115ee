"""Where a record is that may be in the trash."""

from sqlalchemy import Uuid, bindparam, func, literal, or_

from models.content.items.queries import PlacementOf, placed_items
from models.content.items.tables import item
from models.data.databases.tables import database
from models.data.records.rules.write.writes import TRASH
from models.data.records.tables import record

restorable = PlacementOf(
    placed_items()
    .join(database, database.c.item_id == item.c.id)
    .join(record, record.c.database_id == database.c.id)
    .where(
        record.c.id == bindparam("id", type_=Uuid),
        record.c.workspace_id == item.c.workspace_id,
        database.c.workspace_id == item.c.workspace_id,
        or_(record.c.deleted_at.is_(None), record.c.deleted_at > func.now() - literal(TRASH)),
    )
)
"""Where the database of a record is placed that can be restored, or need not be."""

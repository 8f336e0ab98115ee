"""Writing the layout of a database when its fields come and go."""

from models.core.base import Id
from models.data.databases.rules.layout import layout_with, layout_without
from models.data.fields.commands import hold_database, write_database
from models.data.fields.rules.fields import FieldSpecs
from runtime.database import UnitOfWork


async def add_to_layout(
    work: UnitOfWork, workspace_id: Id, database_id: Id, fields: FieldSpecs, new_keys: list[str]
) -> None:
    """Add new fields to the layout of a database; `fields` has them already."""
    row = await hold_database(work, workspace_id, database_id)
    layout = layout_with(row.record_layout, fields, new_keys)
    await write_database(work, workspace_id, database_id, record_layout=layout)


async def remove_from_layout(work: UnitOfWork, workspace_id: Id, database_id: Id, key: str) -> None:
    """Take a field out of the layout of its database."""
    held = await hold_database(work, workspace_id, database_id)
    layout = layout_without(held.record_layout, key)
    await write_database(work, workspace_id, database_id, record_layout=layout)

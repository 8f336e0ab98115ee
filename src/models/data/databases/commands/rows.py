"""Writing rows of databases and fields, for the commands of this folder and for copies."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update

from models.core.base import Id
from models.core.revisions import next_updated_at
from models.data.databases.rules.layout import layout_with, layout_without
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.tables import Database, database, field
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def hold_database(work: UnitOfWork, workspace_id: Id, database_id: Id) -> Database:
    """A database, locked until the transaction ends. Raises `NotFoundError`."""
    found = await work.first(
        select(database)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .with_for_update(),
        of=Database,
    )
    if found is None:
        raise NotFoundError("database")
    return found


async def write_database(
    work: UnitOfWork, workspace_id: Id, database_id: Id, **values: Any
) -> None:
    """Set columns of a database, and always its `updatedAt`."""
    await work.execute(
        update(database)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .values(**values, updated_at=next_updated_at(database.c.updated_at, work.now))
    )


async def insert_fields(
    work: UnitOfWork, workspace_id: Id, database_id: Id, fields: Sequence[FieldSpec]
) -> None:
    """Insert the rows of new fields."""
    rows = [
        {
            **_columns(spec),
            "id": spec.id,
            "workspace_id": workspace_id,
            "database_id": database_id,
            "key": spec.key,
            "created_at": work.now,
            "updated_at": work.now,
        }
        for spec in fields
    ]
    await work.execute(insert(field).values(rows))


async def write_field(
    work: UnitOfWork, workspace_id: Id, spec: FieldSpec, *, values_change: bool = False
) -> None:
    """Update the row of a field.

    With `values_change` its values become others, so its side index is no longer valid.
    """
    stale = {"index_id": None, "index_ready": False} if values_change else {}
    await work.execute(
        update(field)
        .where(field.c.workspace_id == workspace_id, field.c.id == spec.id)
        .values(**_columns(spec), **stale, updated_at=next_updated_at(field.c.updated_at, work.now))
    )


async def delete_field_row(work: UnitOfWork, workspace_id: Id, field_id: Id) -> None:
    """Delete the row of a field."""
    await work.execute(
        delete(field).where(field.c.workspace_id == workspace_id, field.c.id == field_id)
    )


async def add_to_layout(
    work: UnitOfWork, workspace_id: Id, database_id: Id, fields: FieldSpecs, added: list[str]
) -> None:
    """Add new fields to the layout of a database; `fields` has them already."""
    held = await hold_database(work, workspace_id, database_id)
    layout = layout_with(held.record_layout, fields, added)
    await write_database(work, workspace_id, database_id, record_layout=layout)


async def remove_from_layout(work: UnitOfWork, workspace_id: Id, database_id: Id, key: str) -> None:
    """Take a field out of the layout of its database."""
    held = await hold_database(work, workspace_id, database_id)
    layout = layout_without(held.record_layout, key)
    await write_database(work, workspace_id, database_id, record_layout=layout)


def _columns(spec: FieldSpec) -> dict[str, Any]:
    return {
        "label": spec.label,
        "kind": spec.kind.value,
        "required": spec.required,
        "default_value": spec.default,
        "options": [option.wire() for option in spec.options],
        "settings": spec.settings,
        "position": spec.position,
    }

"""Renaming the key of a field in its database and in its records."""

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.field_changes import held_field
from models.data.fields.commands import own_fields, own_schema, write_database, write_key
from models.data.fields.queries import load_schema, removed_keys
from models.data.fields.rows import DATABASE
from models.data.fields.rules.fields import FieldSpec
from models.data.records.bulk import rename_values
from models.data.records.queries import number_of_records
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ValidationError

MOST_RECORDS = 50_000
"""Records whose values one transaction keeps under another key."""

KEYWORDS = frozenset({"false", "in", "null", "true"})
"""Keys that expressions cannot name behind a dot."""


async def hold_field(work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id) -> FieldSpec:
    """A field, locked with its database against writers of records. Raises NotFoundError."""
    await own_fields(work, actor.workspace_id)
    await own_schema(work, database_id)
    return held_field(await load_schema(work, actor.workspace_id, database_id), field_id)


async def rename_key(
    work: UnitOfWork, actor: Actor, database_id: Id, spec: FieldSpec, key: str
) -> None:
    """Give a field that is held another key, and keep its values under it.

    The history of records keeps the key that a field had. Raises ConflictError for the title, a key
    in use and too many records, ValidationError for a key that expressions cannot name.
    """
    if spec.title:
        raise ConflictError("The title field has a fixed key.")
    if key in KEYWORDS:
        raise ValidationError.at("key", "is a keyword of expressions: choose another key")
    schema = await load_schema(work, actor.workspace_id, database_id)
    removed = await removed_keys(work, actor.workspace_id, [database_id])
    if key in schema.fields or key in removed[database_id]:
        raise ConflictError(f"The key {key} is in use. Choose another key.")
    if spec.stored or spec.computed:
        counted = number_of_records(actor.workspace_id).where(DATABASE.id == database_id)
        number = int(await work.scalar(counted))
        if number > MOST_RECORDS:
            raise ConflictError(
                f"The database has {number:,} records. A field can be renamed in a database of up"
                f" to {MOST_RECORDS:,} records."
            )
        place = (actor.workspace_id, database_id, spec.key, key)
        await rename_values(work, *place, computed=spec.computed)
    await write_key(work, actor.workspace_id, spec.id, key)
    await write_database(work, actor.workspace_id, database_id)

"""Writing the options of fields, for writers of records that add some."""

from collections.abc import Collection
from dataclasses import replace

from sqlalchemy import select, update

from models.data.fields.field_rows import field_specs
from models.data.fields.rules.fields import Schema
from models.data.fields.tables import DatabaseField, field
from runtime.database import UnitOfWork


async def lock_fields(work: UnitOfWork, schema: Schema, keys: Collection[str]) -> Schema:
    """The schema with these fields as they are now, locked until the transaction ends.

    They are locked in the order of their ids, so that two writers never deadlock.
    """
    rows = await work.rows(
        select(field)
        .where(
            field.c.workspace_id == schema.workspace_id,
            field.c.database_id == schema.database_id,
            field.c.key.in_(keys),
        )
        .order_by(field.c.id)
        .with_for_update(),
        of=DatabaseField,
    )
    return replace(schema, fields={**schema.fields, **field_specs(rows)})


async def store_options(work: UnitOfWork, schema: Schema, keys: Collection[str]) -> None:
    """Write the options of locked fields."""
    for key in keys:
        spec = schema.fields[key]
        await work.execute(
            update(field)
            .where(field.c.workspace_id == schema.workspace_id, field.c.id == spec.id)
            .values(options=[option.wire() for option in spec.options], updated_at=work.now)
        )

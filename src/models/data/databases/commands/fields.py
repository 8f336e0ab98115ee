"""Adding, changing and removing fields of a database that is in use."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.commands.derived_fields import refuse_dependents, write_derived
from models.data.databases.commands.field_insertion import add_fields
from models.data.databases.commands.field_usages import remove_invalid_usages
from models.data.databases.commands.layouts import add_to_layout
from models.data.databases.commands.removal import remove_field
from models.data.databases.rules.plan import plan_change, plan_field, refuse
from models.data.fields.commands import hold_database, write_database, write_field
from models.data.fields.locks import own_fields, own_schema
from models.data.fields.queries import get_field, load_catalog, load_schema, removed_keys
from models.data.fields.references import check_references
from models.data.fields.rules.buttons import button_problems
from models.data.fields.rules.field_keys import FieldHints
from models.data.fields.rules.fields import FieldSpec, FieldSpecs, Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.shapes import MAX_FIELDS, CreateField, FieldShape, UpdateField
from models.data.formulas.rules.derived_fields import FieldRef
from models.data.records.commands.computed_values import recompute, recompute_field
from models.data.records.commands.index import index_records
from models.data.records.commands.stored_values import (
    clear_options,
    number_records,
    refuse_several,
)
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError
from runtime.ids import new_id


async def create_field(
    work: UnitOfWork, actor: Actor, database_id: Id, body: CreateField
) -> FieldShape:
    """A new field, and for a relation its inverse in the database it points into.

    Raises `NotFoundError` or `DeniedError` for what the settings name, `ValidationError` for what
    is wrong with the field, `ConflictError` for a key in use or too many fields.
    """
    await check_references(work, actor, [(body.kind, body.settings)])
    schema = await _lock_and_load(work, actor, database_id)
    removed = await removed_keys(work, actor.workspace_id, [database_id])
    spec = _planned(schema.fields, body, removed[database_id])
    held = await hold_database(work, actor.workspace_id, database_id)
    (spec,) = await add_fields(
        work, actor, database_id, held.label, schema.fields, [spec], lambda _: ""
    )
    fields = (await load_schema(work, actor.workspace_id, database_id)).fields
    await add_to_layout(work, actor.workspace_id, database_id, fields, [spec.key])
    if spec.kind is FieldKind.AUTO_NUMBER:
        await number_records(work, actor.workspace_id, database_id)
    if spec.derived:
        now = Schema(actor.workspace_id, database_id, fields)
        await recompute_field(work, actor, now, spec.key)
    return await get_field(work, actor.workspace_id, database_id, spec.id)


async def update_field(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    field_id: Id,
    body: UpdateField,
    expected_updated_at: datetime | None = None,
) -> FieldShape:
    """Change what the body names; `expected_updated_at` is as last read.

    An option that the list leaves out is removed from the records that chose it. Raises what
    `create_field` raises, and `ConflictError` when the field is no longer the one that was read.
    """
    schema = await _lock_and_load(work, actor, database_id)
    before = held_field(schema, field_id)
    await expect(work, actor, database_id, field_id, expected_updated_at)
    if body.settings is not None:
        await check_references(work, actor, [(before.kind, body.settings)])
    after = plan_change(before, body, new_id)
    refuse(button_problems(after, schema.fields, FieldHints(schema.fields)))
    if after.relation and after.settings["cardinality"] != before.settings["cardinality"]:
        await own_schema(work, after.target_id)
        if after.settings["cardinality"] == "one":
            await refuse_several(work, actor.workspace_id, after)
    derived_anew = after.derived and after.settings != before.settings
    if derived_anew:
        ref = FieldRef(database_id, after.key)
        after = await write_derived(work, actor.workspace_id, ref, after, actor)
    await write_field(work, actor.workspace_id, after, values_change=derived_anew)
    await write_database(work, actor.workspace_id, database_id)
    now = replace(schema, fields={**schema.fields, after.key: after})
    if derived_anew:
        await recompute_field(work, actor, now, after.key)
    removed = before.option_keys.keys() - after.option_keys.keys()
    if removed:
        await remove_invalid_usages(work, now, after.key)
        cleared = await clear_options(work, schema, after, removed)
        await recompute(work, now, cleared, [after.key])
        await index_records(work, now, cleared, [after.key])
    return await get_field(work, actor.workspace_id, database_id, field_id)


async def delete_field(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    field_id: Id,
    job_id: Id,
    expected_updated_at: datetime | None = None,
) -> FieldShape:
    """Delete a field for good, with the inverse of a relation; gives it as it was.

    Nobody sees its values any more. Where there are many, a job removes them from the records, and
    no other field gets the key until it is done. Raises `NotFoundError`, and `ConflictError` for
    the title, while other fields are derived from this one, and when it was changed since it was
    read.
    """
    schema = await _lock_and_load(work, actor, database_id)
    spec = held_field(schema, field_id)
    shape = await expect(work, actor, database_id, field_id, expected_updated_at)
    if spec.title:
        raise ConflictError("The title field cannot be deleted: every record has a title.")
    specs = {FieldRef(database_id, spec.key): spec}
    catalog = await load_catalog(work, actor.workspace_id, [database_id])
    if spec.relation and spec.inverse_id != spec.id:
        await own_schema(work, spec.target_id)
        inverse = _inverse(catalog[spec.target_id], spec)
        specs[FieldRef(spec.target_id, inverse.key)] = inverse
    await refuse_dependents(work, actor, catalog, specs)
    for ref, removed_spec in specs.items():
        await remove_field(work, actor, ref, removed_spec, job_id)
    return shape


async def expect(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    field_id: Id,
    expected_updated_at: datetime | None,
) -> FieldShape:
    """The field. Raises `ConflictError` when it was changed since it was read."""
    shape = await get_field(work, actor.workspace_id, database_id, field_id)
    if expected_updated_at is not None and shape.updated_at != expected_updated_at:
        raise ConflictError("The field was changed since it was read. Read it again.")
    return shape


def held_field(schema: Schema, field_id: Id) -> FieldSpec:
    """The field of this id. Raises `NotFoundError`."""
    found = next((spec for spec in schema.fields.values() if spec.id == field_id), None)
    if found is None:
        raise NotFoundError("field")
    return found


async def _lock_and_load(work: UnitOfWork, actor: Actor, database_id: Id) -> Schema:
    """The fields of a database, locked against other changes and against writers of records."""
    await own_fields(work, actor.workspace_id)
    await own_schema(work, database_id)
    return await load_schema(work, actor.workspace_id, database_id)


def _planned(
    present_fields: FieldSpecs, body: CreateField, taken_keys: Collection[str]
) -> FieldSpec:
    if len(present_fields) >= MAX_FIELDS:
        raise ConflictError(f"A database has at most {MAX_FIELDS} fields. Delete one first.")
    if body.key in present_fields:
        raise ConflictError(f"The key {body.key} is in use. Choose another key.")
    if body.key in taken_keys:
        raise ConflictError(
            f"The values of a removed field are still being taken out of the key {body.key}."
            " Choose another key, or try again later."
        )
    position = 1 + max(spec.position for spec in present_fields.values())
    return plan_field(body, new_id, {*present_fields, *taken_keys}, position)


def _inverse(fields: FieldSpecs, relation: FieldSpec) -> FieldSpec:
    return next(spec for spec in fields.values() if spec.id == relation.inverse_id)

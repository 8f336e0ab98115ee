"""Creating databases and growing their fields."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import insert, select, update
from sqlalchemy.dialects.postgresql import insert as postgres_insert

from models.access.rules import Actor
from models.base import Id
from models.databases.queries import field_specs, get_database
from models.databases.rules.fields import FieldSpec, Schema
from models.databases.rules.layout import default_layout
from models.databases.rules.plan import MAX_SETTINGS_DEPTH, plan_fields
from models.databases.rules.values import FieldValueError, check_storable
from models.databases.shapes import CreateDatabase, DatabaseDetail
from models.databases.tables import database, field
from models.items.commands import check_parent, create_item_for
from models.items.rules import ItemKind
from models.keys import free_key, slug
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, UnsupportedError, ValidationError
from runtime.ids import new_id

_KEY_ATTEMPTS = 5


async def create_database(work: UnitOfWork, actor: Actor, body: CreateDatabase) -> DatabaseDetail:
    """A new database with its fields and its item (decisions C17).

    Raises `NotFoundError` or `DeniedError` for the parent, `ValidationError` for the fields,
    `UnsupportedError` for views and kinds that cannot be used yet, `ConflictError` for a key in
    use.
    """
    await check_parent(work, actor, body.parent_item_id)
    settings = _settings(body)
    fields = plan_fields(body.fields or [], new_id)
    if body.views:
        raise UnsupportedError("views: views cannot be created yet. Leave the list out.")
    database_id = new_id()
    item_id = await create_item_for(
        work,
        actor,
        ItemKind.DATABASE,
        database_id,
        body.label,
        parent_item_id=body.parent_item_id,
        icon=body.icon,
        order=body.order,
    )
    values = {
        "id": database_id,
        "item_id": item_id,
        "label": body.label,
        "description": body.description,
        "settings": settings,
        "record_layout": default_layout(),
        "created_at": work.now,
        "updated_at": work.now,
    }
    await _insert_with_key(work, actor.workspace_id, values, body.key)
    await _insert_fields(work, actor.workspace_id, database_id, fields)
    return await get_database(work, actor.workspace_id, database_id)


def _settings(body: CreateDatabase) -> dict[str, object]:
    try:
        check_storable(body.settings or {}, MAX_SETTINGS_DEPTH)
    except FieldValueError as problem:
        raise ValidationError.at("settings", str(problem)) from problem
    return body.settings or {}


async def _insert_with_key(
    work: UnitOfWork, workspace_id: Id, values: dict[str, object], key: str | None
) -> None:
    """Insert under the given key, or under the first free one the label suggests.

    A key taken by a transaction that commits meanwhile makes the insert a no-op, not an error.
    """
    wanted = key or slug(str(values["label"]), "database")
    for _ in range(1 if key else _KEY_ATTEMPTS):
        chosen = key or await free_key(work, database, workspace_id, wanted)
        inserted = await work.first(
            postgres_insert(database)
            .values(**values, workspace_id=workspace_id, key=chosen)
            .on_conflict_do_nothing(index_elements=["workspace_id", "key"])
            .returning(database.c.id)
        )
        if inserted is not None:
            return
    raise ConflictError(
        f"The key {wanted} is in use, perhaps by a database in the trash. Choose another key."
    )


async def _insert_fields(
    work: UnitOfWork, workspace_id: Id, database_id: Id, fields: Sequence[FieldSpec]
) -> None:
    rows = [
        {
            "id": spec.id,
            "workspace_id": workspace_id,
            "database_id": database_id,
            "key": spec.key,
            "label": spec.label,
            "kind": spec.kind.value,
            "required": spec.required,
            "default_value": spec.default,
            "options": [option.wire() for option in spec.options],
            "settings": spec.settings,
            "position": spec.position,
            "created_at": work.now,
            "updated_at": work.now,
        }
        for spec in fields
    ]
    await work.execute(insert(field).values(rows))


async def lock_fields(work: UnitOfWork, schema: Schema, keys: Collection[str]) -> Schema:
    """The schema with these fields as they are now, held until the transaction ends.

    Locked in the order of their ids: two writers never wait for each other in a circle.
    """
    rows = await work.rows(
        select(field)
        .where(
            field.c.workspace_id == schema.workspace_id,
            field.c.database_id == schema.database_id,
            field.c.key.in_(keys),
        )
        .order_by(field.c.id)
        .with_for_update()
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

"""Creating, changing and deleting record templates."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Text, delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB

from models.content.surfaces.commands.surfaces import create_content_surface, delete_content_surface
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.revisions import next_updated_at
from models.data.fields.locks import share_schema
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import Schema
from models.data.record_templates.queries import find_template
from models.data.record_templates.references import check_named
from models.data.record_templates.rules import read_prefill
from models.data.record_templates.shapes import (
    MAX_TEMPLATES,
    CreateRecordTemplate,
    DeletedRecordTemplate,
    RecordTemplateShape,
    UpdateRecordTemplate,
)
from models.data.record_templates.tables import record_template
from runtime.advisory_locks import lock_name
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ValidationError
from runtime.ids import new_id


async def create_template(
    work: UnitOfWork, actor: Actor, database_id: Id, body: CreateRecordTemplate
) -> RecordTemplateShape:
    """A new template with an empty surface.

    Raises `NotFoundError` for what its values name, `ValidationError` at `data.<fieldKey>`,
    `ConflictError` when there are too many.
    """
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    await _lock_templates(work, database_id)
    count = select(func.count()).where(*_of(actor.workspace_id, database_id))
    if await work.scalar(count) >= MAX_TEMPLATES:
        raise ConflictError(f"A database has at most {MAX_TEMPLATES} templates. Delete one first.")
    data, relations = await _prefilled(work, actor, schema, body.data, body.relations)
    if body.is_default:
        await _unset_default(work, actor.workspace_id, database_id)
    row = await work.first(
        insert(record_template)
        .values(
            id=new_id(),
            workspace_id=actor.workspace_id,
            database_id=database_id,
            label=body.label,
            description=body.description,
            icon=body.icon,
            data=data,
            relations=relations,
            content_surface_id=await create_content_surface(work, actor, database_id),
            is_default=body.is_default,
            created_at=work.now,
            updated_at=work.now,
        )
        .returning(record_template)
    )
    return RecordTemplateShape.model_validate(row)


async def update_template(
    work: UnitOfWork, actor: Actor, database_id: Id, template_id: Id, body: UpdateRecordTemplate
) -> RecordTemplateShape:
    """Change what the body names. Raises what `create_template` raises."""
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    await _lock_templates(work, database_id)
    row = await find_template(work, actor.workspace_id, database_id, template_id)
    changes: dict[str, Any] = {
        **body.model_dump(include={"label", "is_default"}, exclude_none=True),
        **body.model_dump(include={"description", "icon"}, exclude_unset=True),
    }
    if body.data is not None or body.relations is not None:
        data = row.data if body.data is None else body.data
        relations = row.relations if body.relations is None else body.relations
        data, relations = await _prefilled(work, actor, schema, data, relations)
        changes |= {"data": data, "relations": relations}
    if not changes:
        return RecordTemplateShape.model_validate(row)
    if body.is_default:
        await _unset_default(work, actor.workspace_id, database_id)
    new_row = await work.first(
        update(record_template)
        .where(
            record_template.c.workspace_id == actor.workspace_id,
            record_template.c.id == template_id,
        )
        .values(**changes, updated_at=next_updated_at(record_template.c.updated_at, work.now))
        .returning(record_template)
    )
    return RecordTemplateShape.model_validate(new_row)


async def delete_template(
    work: UnitOfWork, actor: Actor, database_id: Id, template_id: Id
) -> DeletedRecordTemplate:
    """Delete a template with its surface; records made from it stay. Raises `NotFoundError`."""
    row = await find_template(work, actor.workspace_id, database_id, template_id)
    await work.execute(
        delete(record_template).where(
            record_template.c.workspace_id == actor.workspace_id,
            record_template.c.id == template_id,
        )
    )
    await delete_content_surface(work, actor, row.content_surface_id)
    return DeletedRecordTemplate(id=template_id)


async def remove_usages(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_key: str
) -> None:
    """Remove a field that is about to be deleted from the templates of its database."""
    table = record_template.c
    await work.execute(
        update(record_template)
        .where(
            *_of(workspace_id, database_id),
            table.data.has_key(field_key) | table.relations.has_key(field_key),
        )
        .values(
            data=_without(table.data, field_key),
            relations=_without(table.relations, field_key),
            updated_at=work.now,
        )
    )


async def remove_invalid_usages(work: UnitOfWork, schema: Schema, field_key: str) -> None:
    """Remove values that no longer fit a field, after it was changed."""
    rows = await work.rows(
        select(record_template)
        .where(
            *_of(schema.workspace_id, schema.database_id),
            record_template.c.data.has_key(field_key),
        )
        .order_by(record_template.c.id)
        .with_for_update()
    )
    for row in rows:
        try:
            read_prefill(schema.fields, {field_key: row.data[field_key]}, {})
        except ValidationError:
            await work.execute(
                update(record_template)
                .where(
                    record_template.c.workspace_id == schema.workspace_id,
                    record_template.c.id == row.id,
                )
                .values(data=_without(record_template.c.data, field_key), updated_at=work.now)
            )


def _without(column: ColumnElement[Any], key: str) -> ColumnElement[Any]:
    return column.op("-", return_type=JSONB())(literal(key, Text))


async def _prefilled(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    data: Mapping[str, Any] | None,
    relations: Mapping[str, Any] | None,
) -> tuple[JsonObject, JsonObject]:
    change, links = read_prefill(schema.fields, data or {}, relations or {})
    await check_named(work, actor, schema, change, links)
    targets = {key: [str(target) for target in ids] for key, ids in links.items()}
    return dict(change.values), targets


async def _unset_default(work: UnitOfWork, workspace_id: Id, database_id: Id) -> None:
    await work.execute(
        update(record_template)
        .where(*_of(workspace_id, database_id), record_template.c.is_default)
        .values(is_default=False, updated_at=work.now)
    )


async def _lock_templates(work: UnitOfWork, database_id: Id) -> None:
    """Lock the templates of a database, new ones included, until the transaction ends."""
    place = f"record-templates/{database_id}"
    await lock_name(work, place)


def _of(workspace_id: Id, database_id: Id) -> tuple[Any, ...]:
    return (
        record_template.c.workspace_id == workspace_id,
        record_template.c.database_id == database_id,
    )

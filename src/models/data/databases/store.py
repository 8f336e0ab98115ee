"""Databases with their fields and views: read, created, changed and deleted."""

from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.content.items.commands import change_item, check_parent, create_item_for, trash_item
from models.content.items.joins import ITEM
from models.content.items.queries import closed_items
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.pagination import PageRequest
from models.core.problems import refuse
from models.core.values import InvalidValueError, check_storable
from models.data.databases import rules, shapes
from models.data.databases.field_changes import add_fields
from models.data.fields import commands as field_commands
from models.data.fields.queries import check_references, load_schema, shown_fields
from models.data.fields.rows import DATABASE, DatabaseRow, live_databases
from models.data.fields.rules.fields import Schema
from models.data.fields.rules.settings import MAX_SETTINGS_DEPTH
from models.data.fields.shapes import FieldShape
from models.data.views.commands import create_views
from models.data.views.queries import get_view, shown_views
from models.data.views.shapes import ViewShape
from runtime.database import UnitOfWork, columns_of
from runtime.errors import ConflictError, ValidationError
from runtime.ids import new_id


async def get_database(work: UnitOfWork, actor: Actor, database_id: Id) -> shapes.DatabaseDetail:
    """A database with its fields and the views the actor sees. Raises `NotFoundError`."""
    statement = _details(actor.workspace_id).where(DATABASE.id == database_id)
    found = await work.one(statement, "database", of=_DatabaseWithItem)
    fields = await shown_fields(work, actor.workspace_id, [database_id])
    views = await shown_views(work, actor, [database_id])
    return _detail(found, fields, views)


async def list_databases(work: UnitOfWork, actor: Actor, page: PageRequest) -> shapes.DatabaseList:
    """The databases the actor sees, newest first."""
    statement = _details(actor.workspace_id).where(
        DATABASE.item_id.not_in(sa.select(closed_items(actor).c.id))
    )
    result = await page.descending(
        work, statement, DATABASE.created_at, DATABASE.id, of=_DatabaseWithItem
    )
    database_ids = [row.id for row in result.items]
    fields = await shown_fields(work, actor.workspace_id, database_ids)
    views = await shown_views(work, actor, database_ids)
    return shapes.DatabaseList.of(result, lambda row: _detail(row, fields, views))


class _DatabaseWithItem(Protocol):
    """A database with columns of its item."""

    id: Id
    position: float
    created_at: datetime


def _details(workspace_id: Id) -> sa.Select[Any]:
    of_item = (ITEM.parent_item_id, ITEM.icon, ITEM.position, ITEM.archived)
    return live_databases(workspace_id, *DATABASE, *of_item)


def _detail(
    row: _DatabaseWithItem, fields: dict[Id, list[FieldShape]], views: dict[Id, list[ViewShape]]
) -> shapes.DatabaseDetail:
    return shapes.DatabaseDetail.model_validate(
        {
            **columns_of(row),
            "order": row.position,
            "fields": fields[row.id],
            "views": views[row.id],
        }
    )


async def create_database(
    work: UnitOfWork, actor: Actor, body: shapes.CreateDatabase
) -> shapes.DatabaseDetail:
    """A new database with its fields, its views and its item (interface.md#request-bodies).

    Raises `NotFoundError` or `DeniedError` for the parent and for what fields name,
    `ValidationError` for the fields and views, `ConflictError` for a key in use.
    """
    await check_parent(work, actor, body.parent_item_id)
    bodies = body.fields or []
    await check_references(work, actor, [(each.kind, each.settings) for each in bodies])
    settings = _settings(body.settings)
    specs = rules.plan_fields(bodies, new_id)
    if any(spec.relation for spec in specs):
        await field_commands.own_fields(work, actor.workspace_id)
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
        "record_layout": rules.default_layout(),
        "created_at": work.now,
        "updated_at": work.now,
    }
    await field_commands.insert_database(work, actor.workspace_id, values, body.key)
    first = len(specs) - len(bodies)
    places = {spec.key: f"fields.{place - first}." for place, spec in enumerate(specs)}
    fields = await add_fields(work, actor, database_id, body.label, {}, specs, places.__getitem__)
    schema = Schema(actor.workspace_id, database_id, {spec.key: spec for spec in fields})
    await create_views(work, actor, schema, body.views or [])
    return await get_database(work, actor, database_id)


async def update_database(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    body: shapes.UpdateDatabase,
    expected_updated_at: datetime | None = None,
) -> shapes.DatabaseDetail:
    """Change what the body names; `expected_updated_at` is as last read.

    The item of the database gets the label as its title. Raises `NotFoundError` for a view the
    layout names, `ValidationError`, and `ConflictError` when the database or its layout was changed
    since it was read.
    """
    await field_commands.share_schema(work, database_id)
    row = await field_commands.hold_database(work, actor.workspace_id, database_id)
    if expected_updated_at is not None and row.updated_at != expected_updated_at:
        raise ConflictError("The database was changed since it was read. Read it again.")
    changes = body.model_dump(include={"label"}, exclude_none=True)
    if "description" in body.model_fields_set:
        changes["description"] = body.description
    if body.record_layout is not None:
        changes["record_layout"] = await _layout(work, actor, row, body.record_layout)
    if body.settings is not None:
        changes["settings"] = _settings(body.settings)
    placed = _item_columns(body)
    if placed:
        assert row.item_id is not None, "who may change a database sees its item"
        await change_item(work, actor, row.item_id, placed)
    if changes or placed:
        await field_commands.write_database(work, actor.workspace_id, database_id, **changes)
    return await get_database(work, actor, database_id)


async def set_label(work: UnitOfWork, workspace_id: Id, database_id: Id, label: str) -> None:
    """Set the label of a database; the caller gives its item the same title."""
    await field_commands.write_database(work, workspace_id, database_id, label=label)


def _item_columns(body: shapes.UpdateDatabase) -> JsonObject:
    """The columns of the database's item that a body changes."""
    values: JsonObject = body.model_dump(include={"archived"}, exclude_none=True)
    if body.label is not None:
        values["title"] = body.label
    if body.order is not None:
        values["position"] = body.order
    if "icon" in body.model_fields_set:
        values["icon"] = body.icon
    return values


async def _layout(
    work: UnitOfWork, actor: Actor, row: DatabaseRow, body: shapes.ChangeRecordLayout
) -> JsonObject:
    """The layout a body asks for, checked against the present fields and views."""
    fields = (await load_schema(work, actor.workspace_id, row.id)).fields
    for key, shown in (body.relation_views or {}).items():
        if shown.default_view_id is not None and key in fields and fields[key].relation:
            await get_view(work, actor, fields[key].target_id, shown.default_view_id)
    if body.version not in {None, row.record_layout["version"]}:
        raise ConflictError("The layout was changed since it was read. Read it again.")
    layout = rules.changed_layout(row.record_layout, body)
    refuse(rules.layout_problems(layout, fields, "recordLayout"))
    return layout


async def delete_database(work: UnitOfWork, actor: Actor, database_id: Id) -> shapes.DatabaseDetail:
    """Put a database into the trash with all below its item; gives it as it was.

    Raises `NotFoundError`, and `DeniedError` without the write scope of an item below.
    """
    deleted = await get_database(work, actor, database_id)
    await trash_item(work, actor, deleted.item_id)
    return deleted


def _settings(settings: JsonObject | None) -> JsonObject:
    try:
        check_storable(settings or {}, MAX_SETTINGS_DEPTH)
    except InvalidValueError as problem:
        raise ValidationError.at("settings", str(problem)) from problem
    return settings or {}

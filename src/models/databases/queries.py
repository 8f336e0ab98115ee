"""Reading databases and their fields."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, Select, Uuid, bindparam, select, tuple_

from models.access.rules import Actor
from models.base import Id
from models.databases.rules.fields import FieldSpec, FieldSpecs, Option, Schema
from models.databases.rules.kinds import FieldKind
from models.databases.shapes import DatabaseDetail, DatabaseList, FieldShape
from models.databases.tables import database, field
from models.items.queries import PlacementOf, closed_items, placed_items
from models.items.tables import item
from models.pagination import PageRequest
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared import Prepared

visible = PlacementOf(
    placed_items()
    .join(database, database.c.item_id == item.c.id)
    .where(
        database.c.id == bindparam("id", type_=Uuid),
        database.c.workspace_id == item.c.workspace_id,
    )
)
"""Where a database is placed: `await visible(work, workspace_ids, database_id, user_id)`."""


async def get_database(work: UnitOfWork, workspace_id: Id, database_id: Id) -> DatabaseDetail:
    """A database with its fields. Raises `NotFoundError`."""
    found = await work.first(_details(workspace_id).where(database.c.id == database_id))
    if found is None:
        raise NotFoundError("database")
    fields = await _shown_fields(work, workspace_id, [database_id])
    return _detail(found, fields)


async def list_databases(work: UnitOfWork, actor: Actor, page: PageRequest) -> DatabaseList:
    """The databases the actor sees, newest first."""
    statement = (
        _details(actor.workspace_id)
        .where(database.c.item_id.not_in(select(closed_items(actor).c.id)))
        .order_by(database.c.created_at.desc(), database.c.id.desc())
        .limit(page.fetch)
    )
    if page.after is not None:
        statement = statement.where(
            tuple_(database.c.created_at, database.c.id) < tuple_(*page.after)
        )
    shown = page.of(await work.rows(statement), lambda row: (row.created_at, row.id))
    fields = await _shown_fields(work, actor.workspace_id, [row.id for row in shown.items])
    return DatabaseList(
        databases=[_detail(row, fields) for row in shown.items], cursor=shown.cursor
    )


async def load_schema(work: UnitOfWork, workspace_id: Id, database_id: Id) -> Schema:
    """The fields of a database, in order. Raises `NotFoundError` when there is no such database.

    One statement answers both, for every database has a title field.
    """
    parameters = {"workspace_id": workspace_id, "database_id": database_id}
    return schema_of(await _SCHEMA.rows(work, parameters))


def schema_of(rows: Sequence[Row[Any]], noun: str = "database") -> Schema:
    """The schema these field rows make up. Raises `NotFoundError` of `noun` without any."""
    if not rows:
        raise NotFoundError(noun)
    return Schema(rows[0].workspace_id, rows[0].database_id, field_specs(rows))


def fields_of() -> Select[Any]:
    """Fields of the databases that are not in the trash; a caller says of which.

    It takes the parameter `workspace_id`.
    """
    workspace_id = bindparam("workspace_id", type_=Uuid)
    return (
        select(field)
        .join(database, database.c.id == field.c.database_id)
        .join(item, item.c.id == database.c.item_id)
        .where(
            field.c.workspace_id == workspace_id,
            database.c.workspace_id == workspace_id,
            item.c.workspace_id == workspace_id,
            item.c.deleted_at.is_(None),
        )
        .order_by(field.c.position, field.c.key)
    )


_SCHEMA = Prepared(fields_of().where(field.c.database_id == bindparam("database_id", type_=Uuid)))


def field_specs(rows: Iterable[Row[Any]]) -> FieldSpecs:
    """Rows of the field table as the rules see them."""
    return {row.key: _spec(row) for row in rows}


def _spec(row: Row[Any]) -> FieldSpec:
    return FieldSpec(
        id=row.id,
        key=row.key,
        label=row.label,
        kind=FieldKind(row.kind),
        required=row.required,
        default=row.default_value,
        options=tuple(Option(**option) for option in row.options),
        settings=row.settings,
        position=row.position,
    )


def _details(workspace_id: Id) -> Select[Any]:
    return (
        select(
            database,
            item.c.parent_item_id,
            item.c.icon,
            item.c.position,
            item.c.archived,
        )
        .join(item, item.c.id == database.c.item_id)
        .where(
            database.c.workspace_id == workspace_id,
            item.c.workspace_id == workspace_id,
            item.c.deleted_at.is_(None),
        )
    )


async def _shown_fields(
    work: UnitOfWork, workspace_id: Id, database_ids: Sequence[Id]
) -> dict[Id, list[FieldShape]]:
    rows = await work.rows(
        select(field)
        .where(field.c.workspace_id == workspace_id, field.c.database_id.in_(database_ids))
        .order_by(field.c.position, field.c.key)
    )
    fields: dict[Id, list[FieldShape]] = {database_id: [] for database_id in database_ids}
    for row in rows:
        fields[row.database_id].append(_field_shape(row))
    return fields


def _field_shape(row: Row[Any]) -> FieldShape:
    return FieldShape.model_validate({**row._mapping, "order": row.position})


def _detail(row: Row[Any], fields: dict[Id, list[FieldShape]]) -> DatabaseDetail:
    return DatabaseDetail.model_validate(
        {**row._mapping, "order": row.position, "fields": fields[row.id], "views": []}
    )

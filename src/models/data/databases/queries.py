"""Reading databases with their fields and views."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import (
    Select,
    select,
)

from models.content.items.joins import ITEM, live_item_of
from models.content.items.queries import closed_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.databases.shapes import DatabaseDetail, DatabaseList
from models.data.fields.queries import field_shape
from models.data.fields.shapes import FieldShape
from models.data.fields.tables import DatabaseField, database, field
from models.data.views.queries import shown_views
from models.data.views.shapes import ViewShape
from runtime.database import UnitOfWork, columns_of
from runtime.errors import NotFoundError


async def get_database(work: UnitOfWork, actor: Actor, database_id: Id) -> DatabaseDetail:
    """A database with its fields and the views the actor sees. Raises `NotFoundError`."""
    statement = _details(actor.workspace_id).where(database.c.id == database_id)
    found = await work.first(statement, of=_DatabaseWithItem)
    if found is None:
        raise NotFoundError("database")
    fields = await _shown_fields(work, actor.workspace_id, [database_id])
    views = await shown_views(work, actor, [database_id])
    return _detail(found, fields, views)


async def list_databases(work: UnitOfWork, actor: Actor, page: PageRequest) -> DatabaseList:
    """The databases the actor sees, newest first."""
    statement = _details(actor.workspace_id).where(
        database.c.item_id.not_in(select(closed_items(actor).c.id))
    )
    shown = await page.descending(
        work, statement, database.c.created_at, database.c.id, of=_DatabaseWithItem
    )
    database_ids = [row.id for row in shown.items]
    fields = await _shown_fields(work, actor.workspace_id, database_ids)
    views = await shown_views(work, actor, database_ids)
    return DatabaseList(
        databases=[_detail(row, fields, views) for row in shown.items], cursor=shown.cursor
    )


class _DatabaseWithItem(Protocol):
    """A database with columns of its item."""

    id: Id
    position: float
    created_at: datetime


def _details(workspace_id: Id) -> Select[Any]:
    return (
        select(
            database,
            ITEM.parent_item_id,
            ITEM.icon,
            ITEM.position,
            ITEM.archived,
        )
        .join(*live_item_of(database))
        .where(database.c.workspace_id == workspace_id)
    )


async def _shown_fields(
    work: UnitOfWork, workspace_id: Id, database_ids: Sequence[Id]
) -> dict[Id, list[FieldShape]]:
    rows = await work.rows(
        select(field)
        .where(field.c.workspace_id == workspace_id, field.c.database_id.in_(database_ids))
        .order_by(field.c.position, field.c.key),
        of=DatabaseField,
    )
    fields: dict[Id, list[FieldShape]] = {database_id: [] for database_id in database_ids}
    for row in rows:
        fields[row.database_id].append(field_shape(row))
    return fields


def _detail(
    row: _DatabaseWithItem, fields: dict[Id, list[FieldShape]], views: dict[Id, list[ViewShape]]
) -> DatabaseDetail:
    return DatabaseDetail.model_validate(
        {
            **columns_of(row),
            "order": row.position,
            "fields": fields[row.id],
            "views": views[row.id],
        }
    )

"""Reading databases with their fields and views."""

from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.content.items.joins import ITEM
from models.content.items.queries import closed_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.databases.shapes import DatabaseDetail, DatabaseList
from models.data.fields.queries import shown_fields
from models.data.fields.rows import DATABASE, live_databases
from models.data.fields.shapes import FieldShape
from models.data.views.queries import shown_views
from models.data.views.shapes import ViewShape
from runtime.database import UnitOfWork, columns_of


async def get_database(work: UnitOfWork, actor: Actor, database_id: Id) -> DatabaseDetail:
    """A database with its fields and the views the actor sees. Raises `NotFoundError`."""
    statement = _details(actor.workspace_id).where(DATABASE.id == database_id)
    found = await work.one(statement, "database", of=_DatabaseWithItem)
    fields = await shown_fields(work, actor.workspace_id, [database_id])
    views = await shown_views(work, actor, [database_id])
    return _detail(found, fields, views)


async def list_databases(work: UnitOfWork, actor: Actor, page: PageRequest) -> DatabaseList:
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
    return DatabaseList.of(result, lambda row: _detail(row, fields, views))


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
) -> DatabaseDetail:
    return DatabaseDetail.model_validate(
        {
            **columns_of(row),
            "order": row.position,
            "fields": fields[row.id],
            "views": views[row.id],
        }
    )

"""Searching the titles of items and records."""

from typing import Any

from sqlalchemy import CTE, Select, String, Uuid, case, literal, null, select, union_all

from models.content.items.queries import closed_items
from models.content.items.rules import ItemKind
from models.content.items.tables import item
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.databases.tables import database
from models.data.records.tables import record
from models.workspace.search.shapes import HitKind, SearchHit, SearchResults
from runtime.database import UnitOfWork


async def search(work: UnitOfWork, actor: Actor, text: str, page: PageRequest) -> SearchResults:
    """What the actor sees and whose title has the text in it, newest first; nothing archived.

    Records only for those who may read them. Ids are made in the order of time, so items and
    records have one order.
    """
    closed, after = closed_items(actor), None if page.after is None else page.after[0]
    parts = [_items(actor, text, closed, after)]
    if Scope.RECORDS_READ in actor.scopes:
        parts.append(_records(actor, text, closed, after))
    # Each part brings its own newest, so that neither is read whole.
    limited = [select(part.limit(page.fetch).subquery()) for part in parts]
    hits = union_all(*limited).subquery()
    rows = await work.rows(select(hits).order_by(hits.c.id.desc()).limit(page.fetch))
    shown = page.of(rows, lambda row: (row.id,))
    return SearchResults(
        results=[SearchHit.model_validate(row) for row in shown.items], cursor=shown.cursor
    )


def _items(actor: Actor, text: str, closed: CTE, after: Id | None) -> Select[Any]:
    is_database = item.c.kind == ItemKind.DATABASE.value
    found = (
        select(
            literal(HitKind.ITEM.value, String).label("kind"),
            item.c.id,
            item.c.title,
            item.c.id.label("item_id"),
            item.c.kind.label("item_kind"),
            case((is_database, item.c.target_id), else_=null()).cast(Uuid).label("database_id"),
            item.c.icon,
            item.c.updated_at,
        )
        .where(
            item.c.workspace_id == actor.workspace_id,
            item.c.deleted_at.is_(None),
            item.c.archived.is_(False),
            item.c.title.icontains(text, autoescape=True),
            item.c.id.not_in(select(closed.c.id)),
        )
        .order_by(item.c.id.desc())
    )
    return found if after is None else found.where(item.c.id < after)


def _records(actor: Actor, text: str, closed: CTE, after: Id | None) -> Select[Any]:
    found = (
        select(
            literal(HitKind.RECORD.value, String).label("kind"),
            record.c.id,
            record.c.title,
            item.c.id.label("item_id"),
            item.c.kind.label("item_kind"),
            record.c.database_id,
            item.c.icon,
            record.c.updated_at,
        )
        .join(database, database.c.id == record.c.database_id)
        .join(item, item.c.id == database.c.item_id)
        .where(
            record.c.workspace_id == actor.workspace_id,
            database.c.workspace_id == actor.workspace_id,
            item.c.workspace_id == actor.workspace_id,
            record.c.deleted_at.is_(None),
            record.c.archived.is_(False),
            record.c.title.icontains(text, autoescape=True),
            item.c.id.not_in(select(closed.c.id)),
        )
        .order_by(record.c.id.desc())
    )
    return found if after is None else found.where(record.c.id < after)

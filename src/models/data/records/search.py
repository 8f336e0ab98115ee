"""Finding records by their titles, for the search of a workspace."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa

from models.content.items.joins import ITEM
from models.content.items.queries import closed_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rows import live_database_of
from models.data.records.queries import in_time, seen_records
from models.data.records.tables import record
from runtime.database import UnitOfWork

SEARCH_MILLISECONDS = 1_000
"""The time that a search among the titles of one database may take."""


def records_titled(actor: Actor, text: str, closed_items: sa.CTE) -> sa.Select[Any]:
    """The records with the text in their titles, each with the item of its database.

    Nothing archived or in the trash, and no record of a database whose item is in `closed_items`.
    """
    return (
        sa.select(
            record.c.id,
            record.c.title,
            ITEM.id.label("item_id"),
            ITEM.kind.label("item_kind"),
            ITEM.title.label("item_title"),
            record.c.database_id,
            ITEM.icon,
            record.c.updated_at,
        )
        .join(*live_database_of(record))
        .where(
            record.c.workspace_id == actor.workspace_id,
            record.c.deleted_at.is_(None),
            record.c.archived.is_(False),
            record.c.title.icontains(text, autoescape=True),
            ITEM.id.not_in(sa.select(closed_items.c.id)),
        )
    )


async def choices(
    work: UnitOfWork, actor: Actor, database_id: Id, text: str, most: int
) -> Mapping[Id, str]:
    """The titles of the newest records of a database with the text in them, as the actor sees.

    Raises `QueryTooSlowError`.
    """
    having = records_titled(actor, text, closed_items(actor))
    statement = having.where(record.c.database_id == database_id)
    async with _briefly(work):
        rows = await work.rows(statement.order_by(record.c.id.desc()).limit(most))
        return {row.id: row.title for row in rows}


async def titled(work: UnitOfWork, actor: Actor, database_id: Id, title: str) -> Sequence[Id]:
    """The records of a database with this title, however it is capitalized; at most two.

    Raises `QueryTooSlowError`.
    """
    statement = (
        records_titled(actor, title, closed_items(actor))
        .where(record.c.database_id == database_id)
        .where(sa.func.lower(record.c.title) == sa.func.lower(title))
    )
    async with _briefly(work):
        return [row.id for row in await work.rows(statement.limit(2))]


@asynccontextmanager
async def _briefly(work: UnitOfWork) -> AsyncIterator[None]:
    """Bound what a person waits for: no index knows the parts of titles."""
    name = "statement_timeout"
    async with in_time(), work.savepoint():
        usual = await work.scalar(sa.select(sa.func.current_setting(name)))
        await work.execute(sa.select(sa.func.set_config(name, f"{SEARCH_MILLISECONDS}ms", True)))
        yield
        await work.execute(sa.select(sa.func.set_config(name, usual, True)))


async def seen_titles(work: UnitOfWork, actor: Actor, ids: Sequence[Id]) -> Mapping[Id, str]:
    """The titles of the records among these that the actor sees."""
    rows = await work.rows(seen_records(actor, ids).add_columns(record.c.title))
    return {row.id: row.title or "" for row in rows}

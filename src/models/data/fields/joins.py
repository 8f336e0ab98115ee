"""Parts of statements about databases, for nouns whose rows belong to them."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, select

from models.content.items.joins import live_item_of
from models.content.items.queries import closed_items, placed
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.tables import database

DATABASE = database.c
"""The columns of databases in the statements that this module begins."""


def database_of(noun: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the database of a noun's rows, in the trash or not.

    To be spread: `select(…).join(*database_of(noun))`.
    """
    return database, _owns(noun)


def live_database_of(noun: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the database of a noun's rows and its item, unless it is in the trash."""
    return database.join(*live_item_of(database)), _owns(noun)


def _owns(noun: FromClause) -> ColumnElement[bool]:
    return and_(database.c.workspace_id == noun.c.workspace_id, database.c.id == noun.c.database_id)


def live_databases(
    workspace_id: Id | ColumnElement[Id], *columns: ColumnElement[Any]
) -> Select[Any]:
    """These columns of the databases outside the trash, of their items and of what is joined."""
    return (
        select(*columns)
        .select_from(database)
        .join(*live_item_of(database))
        .where(database.c.workspace_id == workspace_id)
    )


def open_databases(actor: Actor, *columns: ColumnElement[Any]) -> Select[Any]:
    """These columns of the databases that the actor sees, and of what is joined."""
    return (
        select(*columns)
        .select_from(database)
        .where(
            database.c.workspace_id == actor.workspace_id,
            database.c.item_id.not_in(select(closed_items(actor).c.id)),
        )
    )


def closed_databases(actor: Actor) -> Select[Any]:
    """The ids of the databases that the actor does not see."""
    return select(database.c.id).where(
        database.c.workspace_id == actor.workspace_id,
        database.c.item_id.in_(select(closed_items(actor).c.id)),
    )


def placed_databases() -> Select[Any]:
    """The start of a `PlacementOf`, for what belongs to a database."""
    return placed(database)


def item_of_database(
    workspace_id: Id | ColumnElement[Id], database_id: Id | ColumnElement[Id]
) -> Select[Any]:
    """The item of a database, which may be a column of the enclosing statement."""
    return (
        select(database.c.item_id)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .correlate_except(database)
    )

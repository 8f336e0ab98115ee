"""Reading views: the shared ones of a database, and the personal ones of the caller."""

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONPATH

from models.content.items.queries import closed_items, sees_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.fields.rows import DATABASE, database_of
from models.data.records.rules.query.plan import through_view
from models.data.records.shapes import RecordQuery
from models.data.views.rules.kinds import ViewScope
from models.data.views.shapes import ViewList, ViewShape
from models.data.views.tables import View, view
from runtime.database import UnitOfWork

_ORDER = (view.c.position, view.c.id)


def seen_views(actor: Actor, ids: Sequence[Id]) -> sa.Select[Any]:
    """The ids of the given views that the actor sees, shared ones and their own."""
    return (
        sa.select(view.c.id)
        .join(*database_of(view))
        .where(
            view.c.workspace_id == actor.workspace_id,
            view.c.id == sa.func.any(ids),
            sa.or_(view.c.scope == ViewScope.SHARED.value, view.c.owner_user_id == actor.user_id),
            sees_items(actor, view.c.item_id, DATABASE.item_id),
        )
    )


async def seen_view(work: UnitOfWork, actor: Actor, view_id: Id) -> View:
    """A view that the actor sees, of any database. Raises `NotFoundError`."""
    seen = seen_views(actor, [view_id])
    return await work.one(sa.select(view).where(view.c.id.in_(seen)), "view", of=View)


async def shown_views(
    work: UnitOfWork, actor: Actor, database_ids: Sequence[Id]
) -> dict[Id, list[ViewShape]]:
    """The views of each of these databases that the actor sees, in order; one statement."""
    rows = await work.rows(
        sa.select(view)
        .where(view.c.database_id == sa.func.any(list(database_ids)), *_listed(actor))
        .order_by(*_ORDER),
        of=View,
    )
    views: dict[Id, list[ViewShape]] = {database_id: [] for database_id in database_ids}
    for row in rows:
        views[row.database_id].append(ViewShape.model_validate(row))
    return views


async def list_views(
    work: UnitOfWork, actor: Actor, database_id: Id, page: PageRequest
) -> ViewList:
    """The views of a database that the actor sees, in order; standalone ones are items."""
    statement = sa.select(view).where(view.c.database_id == database_id, *_listed(actor))
    shown = await page.ascending(work, statement, *_ORDER, of=View)
    return ViewList.of(shown)


async def get_view(work: UnitOfWork, actor: Actor, database_id: Id, view_id: Id) -> ViewShape:
    """One view of a database. Raises `NotFoundError`, also for a view of somebody else's."""
    return ViewShape.model_validate(await find_view(work, actor, database_id, view_id))


async def through_its_view(
    work: UnitOfWork, actor: Actor, database_id: Id, query: RecordQuery
) -> RecordQuery:
    """A query, narrowed and completed by the view it names. Raises `NotFoundError` for the view."""
    if query.view_id is None:
        return query
    return through_view(query, (await find_view(work, actor, database_id, query.view_id)).manifest)


async def view_definition(work: UnitOfWork, workspace_id: Id, view_id: Id) -> View:
    """The content of a view, whosever it is. Raises `NotFoundError`."""
    return await work.one(
        sa.select(view.c.database_id, view.c.kind, view.c.manifest).where(
            view.c.workspace_id == workspace_id, view.c.id == view_id
        ),
        "view",
        of=View,
    )


async def find_view(
    work: UnitOfWork, actor: Actor, database_id: Id, view_id: Id, *, locked: bool = False
) -> View:
    """A view the actor sees; `locked` locks it until the transaction ends.

    Raises `NotFoundError`.
    """
    placed = view.c.item_id.not_in(sa.select(closed_items(actor).c.id))
    statement = sa.select(view).where(
        view.c.workspace_id == actor.workspace_id,
        view.c.database_id == database_id,
        view.c.id == view_id,
        _seen_by(actor),
        sa.or_(view.c.item_id.is_(None), placed),
    )
    return await work.one(
        statement.with_for_update(of=view) if locked else statement, "view", of=View
    )


def existing_views(workspace_id: Id, view_ids: Collection[Id]) -> sa.Select[Id]:
    """The ids of the given views that exist, whosever they are."""
    return sa.select(view.c.id).where(view.c.workspace_id == workspace_id, view.c.id.in_(view_ids))


def names_field(field_key: str) -> sa.ColumnElement[bool]:
    """True when a manifest has the field key as a value anywhere."""
    path = f'$.** ? (@ == "{field_key}")'  # keys are slugs, so nothing needs escaping
    return sa.func.jsonb_path_exists(view.c.manifest, sa.cast(path, JSONPATH))


def _listed(actor: Actor) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        view.c.workspace_id == actor.workspace_id,
        view.c.item_id.is_(None),
        _seen_by(actor),
    )


def _seen_by(actor: Actor) -> sa.ColumnElement[bool]:
    return sa.or_(view.c.scope == ViewScope.SHARED.value, view.c.owner_user_id == actor.user_id)

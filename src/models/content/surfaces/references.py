"""Whether the actor sees everything a content names: one statement per kind of thing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Text,
    and_,
    any_,
    cast,
    func,
    literal,
    or_,
    select,
)

from models.content.files.tables import file
from models.content.items.queries import closed_items
from models.content.items.rules import ItemKind
from models.content.items.tables import item
from models.content.surfaces.rules.references import Reference, references
from models.content.surfaces.tables import block
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.tables import database
from models.data.records.tables import record
from models.data.views.rules.kinds import ViewScope
from models.data.views.tables import view
from models.people.workspaces.tables import workspace_member
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def check_references(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    contents: Iterable[Any],
    new_blocks: Iterable[Id] = (),
) -> None:
    """Everything named is seen by the actor, is being made, or is named on the surface already.

    So whoever may edit a page can save it, though others put on it what they do not see, or what
    is gone by now. Raises `NotFoundError` of the first noun that is none of these.
    """
    named = references(list(contents)) - {Reference("block", one) for one in new_blocks}
    missing: set[Reference] = set()
    for noun in sorted({reference.noun for reference in named}):
        wanted = [reference.id for reference in named if reference.noun == noun]
        rows = await work.rows(_SEEN[noun](actor, surface_id, wanted))
        missing |= {Reference(noun, one) for one in set(wanted) - {row.id for row in rows}}
    if missing:
        missing -= await _named_already(work, actor, surface_id, missing)
    if missing:
        raise NotFoundError(min(reference.noun for reference in missing))


async def _named_already(
    work: UnitOfWork, actor: Actor, surface_id: Id, missing: set[Reference]
) -> set[Reference]:
    patterns = literal([f"%{reference.id}%" for reference in missing], ARRAY(Text))
    rows = await work.rows(
        select(block.c.content).where(
            block.c.workspace_id == actor.workspace_id,
            block.c.surface_id == surface_id,
            cast(block.c.content, Text).like(any_(patterns)),
        )
    )
    return references([row.content for row in rows])


def _open(actor: Actor, *item_ids: ColumnElement[Any]) -> ColumnElement[bool]:
    """The actor sees these items, or there are none."""
    closed = select(closed_items(actor).c.id)
    return and_(*(or_(item_id.is_(None), item_id.not_in(closed)) for item_id in item_ids))


def _items(actor: Actor, _surface_id: Id, ids: Sequence[Id]) -> Select[Any]:
    return select(item.c.id).where(
        item.c.workspace_id == actor.workspace_id,
        item.c.id == func.any(ids),
        _open(actor, item.c.id),
    )


def _databases(actor: Actor, _surface_id: Id, ids: Sequence[Id]) -> Select[Any]:
    return select(database.c.id).where(
        database.c.workspace_id == actor.workspace_id,
        database.c.id == func.any(ids),
        _open(actor, database.c.item_id),
    )


def _records(actor: Actor, _surface_id: Id, ids: Sequence[Id]) -> Select[Any]:
    return (
        select(record.c.id)
        .join(database, database.c.id == record.c.database_id)
        .where(
            record.c.workspace_id == actor.workspace_id,
            database.c.workspace_id == actor.workspace_id,
            record.c.id == func.any(ids),
            record.c.deleted_at.is_(None),
            _open(actor, database.c.item_id),
        )
    )


def _views(actor: Actor, _surface_id: Id, ids: Sequence[Id]) -> Select[Any]:
    return (
        select(view.c.id)
        .join(database, database.c.id == view.c.database_id)
        .where(
            view.c.workspace_id == actor.workspace_id,
            database.c.workspace_id == actor.workspace_id,
            view.c.id == func.any(ids),
            or_(view.c.scope == ViewScope.SHARED.value, view.c.owner_user_id == actor.user_id),
            _open(actor, view.c.item_id, database.c.item_id),
        )
    )


def _files(actor: Actor, _surface_id: Id, ids: Sequence[Id]) -> Select[Any]:
    """A file that an item places is seen where the item is."""
    placed = and_(
        item.c.workspace_id == actor.workspace_id,
        item.c.kind == ItemKind.FILE.value,
        item.c.target_id == file.c.id,
    )
    return (
        select(file.c.id)
        .outerjoin(item, placed)
        .where(
            file.c.workspace_id == actor.workspace_id,
            file.c.id == func.any(ids),
            file.c.deleted_at.is_(None),
            _open(actor, item.c.id),
        )
    )


def _users(actor: Actor, _surface_id: Id, ids: Sequence[Id]) -> Select[Any]:
    return select(workspace_member.c.user_id.label("id")).where(
        workspace_member.c.workspace_id == actor.workspace_id,
        workspace_member.c.user_id == func.any(ids),
    )


def _blocks(actor: Actor, surface_id: Id, ids: Sequence[Id]) -> Select[Any]:
    return select(block.c.id).where(
        block.c.workspace_id == actor.workspace_id,
        block.c.surface_id == surface_id,
        block.c.id == func.any(ids),
    )


_SEEN: Mapping[str, Callable[[Actor, Id, Sequence[Id]], Select[Any]]] = {
    "item": _items,
    "database": _databases,
    "record": _records,
    "view": _views,
    "file": _files,
    "user": _users,
    "block": _blocks,
}

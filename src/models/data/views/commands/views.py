"""Creating, changing and deleting views; manifests are checked against the current fields."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update

from models.content.items.commands import rename_item
from models.content.items.queries import placement as item_placement
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.core.inputs import read_part
from models.core.revisions import next_updated_at
from models.data.fields.locks import share_schema
from models.data.fields.queries import database_level, load_schema
from models.data.fields.rules.fields import Schema
from models.data.views.commands.creation import (
    check_relation_field,
    insert_item_view,
    insert_views,
    lock_views,
)
from models.data.views.queries import find_view
from models.data.views.rules.kinds import ViewKind, ViewScope
from models.data.views.rules.manifest import read_manifest
from models.data.views.shapes import (
    CreateView,
    DeletedView,
    ItemViewConfig,
    Manifest,
    UpdateView,
    ViewShape,
)
from models.data.views.tables import View, view
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError

DEFAULT_VIEW = CreateView.model_validate({"label": "All records"})
"""The view of a new database whose body lists no shared one."""


async def create_view(
    work: UnitOfWork, actor: Actor, database_id: Id, body: CreateView
) -> ViewShape:
    """A new view of a database.

    Raises `NotFoundError` for the relation field, `DeniedError` for a locked view without manage
    access, `ValidationError` at `manifest.…`, `ConflictError` for a key in use or too many views.
    """
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    (made,) = await insert_views(work, actor, schema, {"": body})
    return made


async def create_views(
    work: UnitOfWork, actor: Actor, schema: Schema, bodies: Sequence[CreateView]
) -> None:
    """Create the views of a new database, the default one first unless a shared one is listed.

    Raises what `create_view` raises, with places below `views`.
    """
    placed = {f"views.{place}.": body for place, body in enumerate(bodies)}
    if all(body.scope is not ViewScope.SHARED for body in bodies):
        placed = {"": DEFAULT_VIEW, **placed}
    await insert_views(work, actor, schema, placed)


async def update_view(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    view_id: Id,
    body: UpdateView,
    expected_updated_at: datetime | None = None,
) -> ViewShape:
    """Change what the body names; `expected_updated_at` is as last read.

    `definitionVersion` is incremented exactly when the manifest changes. Raises what `create_view`
    raises, and `ConflictError` when the view was changed since it was read, or is the last shared
    one and is made personal.
    """
    row = await _hold(work, actor, database_id, view_id, touches_lock=body.locked is not None)
    if expected_updated_at is not None and row.updated_at != expected_updated_at:
        raise ConflictError("The view was changed since it was read. Read it again.")
    changes = {
        **body.model_dump(include={"label", "locked"}, exclude_none=True),
        **({} if body.order is None else {"position": body.order}),
        **await _placement_columns(work, actor, row, body),
        **await _scope_columns(work, actor, row, body.scope),
        **await _definition_columns(work, actor, row, body),
    }
    if not changes:
        return ViewShape.model_validate(row)
    new_row = await work.first(
        update(view)
        .where(view.c.workspace_id == actor.workspace_id, view.c.id == view_id)
        .values(**changes, updated_at=next_updated_at(view.c.updated_at, work.now))
        .returning(view)
    )
    if row.item_id is not None and body.label is not None:
        await rename_item(work, actor, row.item_id, body.label)
    return ViewShape.model_validate(new_row)


async def set_label(work: UnitOfWork, workspace_id: Id, view_id: Id, label: str) -> None:
    """Set the label of a view; the caller gives its item the same title."""
    await work.execute(
        update(view)
        .where(view.c.workspace_id == workspace_id, view.c.id == view_id)
        .values(label=label, updated_at=next_updated_at(view.c.updated_at, work.now))
    )


async def delete_view(work: UnitOfWork, actor: Actor, database_id: Id, view_id: Id) -> DeletedView:
    """Delete a view for good.

    Raises `NotFoundError`, `DeniedError` for a locked one, `ConflictError` for the last shared one
    and for one that has an item.
    """
    row = await _hold(work, actor, database_id, view_id)
    if row.item_id is not None:
        raise ConflictError("This view stands in the tree by itself: delete its item instead.")
    if row.scope == ViewScope.SHARED:
        await _refuse_last(work, row)
    await work.execute(
        delete(view).where(view.c.workspace_id == actor.workspace_id, view.c.id == view_id)
    )
    return DeletedView(id=view_id)


async def create_item_view(
    work: UnitOfWork,
    actor: Actor,
    item_id: Id,
    label: str,
    config: JsonObject,
    *,
    view_id: Id | None = None,
) -> Id:
    """Create the view behind an existing item of the kind `view`; gives the view's id.

    `config` is `{databaseId, kind?, manifest?}`. Raises `NotFoundError` for a database the actor
    does not see, `ValidationError` at `config.…`.
    """
    body = read_part(ItemViewConfig, config, "config")
    if await database_level(work, actor, body.database_id) < Level.VIEW:
        raise NotFoundError("database")
    await share_schema(work, body.database_id)
    schema = await load_schema(work, actor.workspace_id, body.database_id)
    return await insert_item_view(work, schema, item_id, label, body, view_id)


async def _hold(
    work: UnitOfWork, actor: Actor, database_id: Id, view_id: Id, *, touches_lock: bool = False
) -> View:
    """The view, locked until the transaction ends, if the actor may change it."""
    await share_schema(work, database_id)
    await lock_views(work, database_id)
    row = await find_view(work, actor, database_id, view_id, locked=True)
    item_id = row.item_id
    if item_id is not None and await item_placement.level(work, actor, item_id) < Level.EDIT:
        raise DeniedError("This needs edit access to the view's item.")
    if row.locked or touches_lock:
        level = await database_level(work, actor, database_id)
        if level < Level.MANAGE:
            raise DeniedError("A locked view is changed, and a view locked, with manage access.")
    return row


async def _placement_columns(
    work: UnitOfWork, actor: Actor, row: View, body: UpdateView
) -> JsonObject:
    """Placement and relation field, when either is named; they must fit together."""
    named = body.model_fields_set & {"placement", "relation_field_id"}
    if not named:
        return {}
    placement = body.placement or row.placement
    field_id = body.relation_field_id if "relation_field_id" in named else row.relation_field_id
    if "relation_field_id" not in named and placement != row.placement:
        field_id = None
    if row.item_id is not None:
        raise ConflictError("This view stands in the tree by itself: its placement stays.")
    await check_relation_field(work, actor, row.database_id, placement, field_id)
    return {"placement": placement, "relation_field_id": field_id}


async def _scope_columns(
    work: UnitOfWork, actor: Actor, row: View, scope: ViewScope | None
) -> JsonObject:
    """The new scope; a view made personal belongs to the actor."""
    if scope is None or scope == row.scope:
        return {}
    if scope is ViewScope.SHARED:
        return {"scope": scope.value, "owner_user_id": None}
    await _refuse_last(work, row)
    return {"scope": scope.value, "owner_user_id": actor.user_id}


async def _definition_columns(
    work: UnitOfWork, actor: Actor, row: View, body: UpdateView
) -> JsonObject:
    """Kind and manifest, when either is named; they must fit together and the fields."""
    if body.kind is None and body.manifest is None:
        return {}
    schema = await load_schema(work, actor.workspace_id, row.database_id)
    kind = body.kind or ViewKind(row.kind)
    manifest = body.manifest or Manifest.model_validate(row.manifest)
    stored = read_manifest(kind, manifest, schema.fields, work.now)
    if stored == row.manifest:
        return {"kind": kind.value}
    return {
        "kind": kind.value,
        "manifest": stored,
        "definition_version": row.definition_version + 1,
    }


async def _refuse_last(work: UnitOfWork, row: View) -> None:
    """Raise `ConflictError` when a view is the last shared one of its database."""
    other_view = await work.first(
        select(view.c.id)
        .where(
            view.c.workspace_id == row.workspace_id,
            view.c.database_id == row.database_id,
            view.c.id != row.id,
            view.c.scope == ViewScope.SHARED.value,
            view.c.item_id.is_(None),
        )
        .limit(1)
    )
    if other_view is None and row.item_id is None:
        raise ConflictError("A database keeps at least one shared view. Make another one first.")

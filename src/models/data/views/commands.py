"""Creating, changing and deleting views; manifests are checked against current fields; bundles."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from models.content.items.commands import rename_item
from models.content.items.joins import ITEM, live_items
from models.content.items.queries import placement as item_placement
from models.core.access.rules import Actor, Level
from models.core.base import LONGEST_LABEL, Deleted, Id, JsonObject
from models.core.bundles import USER, BundleKind, Row, Stage, shape_problem
from models.core.keys import first_free, slug
from models.core.problems import read_part
from models.core.values import next_updated_at
from models.data.fields.commands import of_live_databases, share_schema
from models.data.fields.queries import database_level, field_with_key, load_schema, seen_field
from models.data.fields.rules.fields import FieldKind, Schema
from models.data.views import shapes
from models.data.views.queries import View, find_view, names_field, view
from models.data.views.rules.kinds import Placement, ViewKind, ViewScope
from models.data.views.rules.manifest import read_manifest, without_field
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError, PlatformError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.statements import lock_name

DEFAULT_VIEW = shapes.CreateView.model_validate({"label": "All records"})
"""The view of a new database whose body lists no shared one."""


async def create_view(
    work: UnitOfWork, actor: Actor, database_id: Id, body: shapes.CreateView
) -> shapes.ViewShape:
    """A new view of a database.

    Raises `NotFoundError` for the relation field, `DeniedError` for a locked view without manage
    access, `ValidationError` at `manifest.…`, `ConflictError` for a key in use or too many views.
    """
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    (made,) = await insert_views(work, actor, schema, {"": body})
    return made


async def duplicate_view(
    work: UnitOfWork, actor: Actor, database_id: Id, view_id: Id, body: shapes.DuplicateView
) -> shapes.ViewShape:
    """A copy of a view, last among its siblings and never locked.

    Raises what `create_view` raises, and `NotFoundError` for the view.
    """
    original = shapes.ViewShape.model_validate(await find_view(work, actor, database_id, view_id))
    is_item = original.placement is Placement.ITEM
    copy = shapes.CreateView.model_validate(
        {
            "label": body.label or f"Copy of {original.label}"[:LONGEST_LABEL],
            "kind": original.kind,
            "placement": Placement.DATABASE.value if is_item else original.placement.value,
            "manifest": original.manifest,
            "relationFieldId": original.relation_field_id,
            "scope": body.scope or original.scope,
        }
    )
    return await create_view(work, actor, database_id, copy)


async def create_views(
    work: UnitOfWork, actor: Actor, schema: Schema, bodies: Sequence[shapes.CreateView]
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
    body: shapes.UpdateView,
    expected_updated_at: datetime | None = None,
) -> shapes.ViewShape:
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
        return shapes.ViewShape.model_validate(row)
    new_row = await work.first(
        sa.update(view)
        .where(view.c.workspace_id == actor.workspace_id, view.c.id == view_id)
        .values(**changes, updated_at=next_updated_at(view.c.updated_at, work.now))
        .returning(view)
    )
    if row.item_id is not None and body.label is not None:
        await rename_item(work, actor, row.item_id, body.label)
    return shapes.ViewShape.model_validate(new_row)


async def set_label(work: UnitOfWork, workspace_id: Id, view_id: Id, label: str) -> None:
    """Set the label of a view; the caller gives its item the same title."""
    await work.execute(
        sa.update(view)
        .where(view.c.workspace_id == workspace_id, view.c.id == view_id)
        .values(label=label, updated_at=next_updated_at(view.c.updated_at, work.now))
    )


async def delete_view(work: UnitOfWork, actor: Actor, database_id: Id, view_id: Id) -> Deleted:
    """Delete a view for good.

    Raises `NotFoundError`, `DeniedError` for a locked one, `ConflictError` for the last shared one
    and for one that has an item.
    """
    row = await _hold(work, actor, database_id, view_id)
    if row.item_id is not None:
        raise ConflictError("This view has its own item: delete the item instead.")
    if row.scope == ViewScope.SHARED:
        await _refuse_last(work, row)
    await work.execute(
        sa.delete(view).where(view.c.workspace_id == actor.workspace_id, view.c.id == view_id)
    )
    return Deleted(id=view_id)


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
    body = read_part(shapes.ItemViewConfig, config, "config")
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
            raise DeniedError("Changing a locked view, or locking a view, needs manage access.")
    return row


async def _placement_columns(
    work: UnitOfWork, actor: Actor, row: View, body: shapes.UpdateView
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
        raise ConflictError("This view has its own item: its placement cannot change.")
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
    work: UnitOfWork, actor: Actor, row: View, body: shapes.UpdateView
) -> JsonObject:
    """Kind and manifest, when either is named; they must fit together and the fields."""
    if body.kind is None and body.manifest is None:
        return {}
    schema = await load_schema(work, actor.workspace_id, row.database_id)
    kind = body.kind or ViewKind(row.kind)
    manifest = body.manifest or shapes.Manifest.model_validate(row.manifest)
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
        sa.select(view.c.id)
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
        raise ConflictError("A database needs at least one shared view. Create another one first.")


async def insert_views(
    work: UnitOfWork, actor: Actor, schema: Schema, bodies: Mapping[str, shapes.CreateView]
) -> list[shapes.ViewShape]:
    """Insert new views in order; the keys of `bodies` are the paths of the bodies in the request.

    Raises `NotFoundError`, `DeniedError`, `ValidationError` and `ConflictError`.
    """
    for path, body in bodies.items():
        await check_relation_field(
            work, actor, schema.database_id, body.placement, body.relation_field_id, path
        )
    if any(body.locked for body in bodies.values()):
        level = await database_level(work, actor, schema.database_id)
        if level < Level.MANAGE:
            raise DeniedError("Locking a view needs manage access to the database.")
    taken = await _TakenKeys.of(work, schema)
    rows = [
        {
            **taken.row(work, body.label, body.key, body.kind, f"{path}key"),
            "placement": body.placement,
            "manifest": read_manifest(
                body.kind, body.manifest, schema.fields, work.now, f"{path}manifest"
            ),
            "relation_field_id": body.relation_field_id,
            "owner_user_id": actor.user_id if body.scope is ViewScope.PERSONAL else None,
            "scope": body.scope.value,
            "locked": body.locked,
            **({} if body.order is None else {"position": body.order}),
        }
        for path, body in bodies.items()
    ]
    await work.execute(sa.insert(view), rows)
    return [shapes.ViewShape.model_validate(row) for row in rows]


async def insert_item_view(
    work: UnitOfWork,
    schema: Schema,
    item_id: Id,
    label: str,
    body: shapes.ItemViewConfig,
    view_id: Id | None,
) -> Id:
    """Insert the view behind an item; gives its id."""
    path = "config.manifest"
    manifest = read_manifest(body.kind, body.manifest, schema.fields, work.now, path)
    taken = await _TakenKeys.of(work, schema)
    row = {
        **taken.row(work, label, None, body.kind, "config.key"),
        "item_id": item_id,
        "placement": Placement.ITEM.value,
        "manifest": manifest,
        "scope": ViewScope.SHARED.value,
        "locked": False,
    }
    made: Id = row["id"] if view_id is None else view_id
    await work.execute(sa.insert(view).values({**row, "id": made}))
    return made


class _TakenKeys:
    """The keys and positions of the views of a database, which is locked for new views."""

    def __init__(self, schema: Schema, rows: Sequence[View]) -> None:
        self.schema = schema
        self.keys = {row.key for row in rows}
        self.last = max((row.position for row in rows), default=-1.0)

    @classmethod
    async def of(cls, work: UnitOfWork, schema: Schema) -> "_TakenKeys":
        await lock_views(work, schema.database_id)
        rows = await work.rows(
            sa.select(view.c.key, view.c.position).where(
                view.c.workspace_id == schema.workspace_id,
                view.c.database_id == schema.database_id,
            ),
            of=View,
        )
        return cls(schema, rows)

    def row(
        self, work: UnitOfWork, label: str, key: str | None, kind: ViewKind, path: str
    ) -> dict[str, Any]:
        """The columns that every new view has: a free key, and the position after the last."""
        if len(self.keys) >= shapes.MAX_VIEWS:
            raise ConflictError(
                f"A database has at most {shapes.MAX_VIEWS} views. Delete one first."
            )
        if key in self.keys:
            raise ConflictError(f"{path}: the key {key} is in use. Choose another key.")
        view_key = key or first_free(slug(label, "view"), self.keys)
        self.keys.add(view_key)
        self.last += 1
        return {
            "id": new_id(),
            "workspace_id": self.schema.workspace_id,
            "database_id": self.schema.database_id,
            "key": view_key,
            "label": label,
            "kind": kind.value,
            "definition_version": 1,
            "position": self.last,
            "created_at": work.now,
            "updated_at": work.now,
        }


async def lock_views(work: UnitOfWork, database_id: Id) -> None:
    """Lock the views of a database, new ones included, until the transaction ends."""
    place = f"views/{database_id}"
    await lock_name(work, place)


async def check_relation_field(
    work: UnitOfWork,
    actor: Actor,
    database_id: Id,
    placement: str,
    field_id: Id | None,
    path: str = "",
) -> None:
    """Check that a view placed at a relation names a relation field of or into its database.

    Raises `NotFoundError` for a field the actor does not see, `ValidationError`.
    """
    place = f"{path}relationFieldId"
    if field_id is not None and not await _relates(work, actor, database_id, field_id):
        raise ValidationError.at(
            place, "must be a relation field of this database, or one that points at it"
        )
    if placement == Placement.RELATION and field_id is None:
        raise ValidationError.at(place, "is required for views that are placed at a relation")
    if placement != Placement.RELATION and field_id is not None:
        raise ValidationError.at(place, "is only for views that are placed at a relation")


async def _relates(work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id) -> bool:
    found = await seen_field(work, actor, field_id)
    if found is None:
        raise NotFoundError("field")
    if found.kind != FieldKind.RELATION:
        return False
    sides = {str(found.database_id), found.settings.get("databaseId")}
    return str(database_id) in sides


async def remove_usages(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_key: str
) -> None:
    """Remove a field that is about to be deleted from the manifests of its database's views.

    A view whose kind needs the field becomes a table. A view placed at the field, a relation, is
    placed with the other views.
    """
    gone = field_with_key(workspace_id, database_id, field_key)
    await work.execute(
        sa.update(view)
        .where(
            view.c.workspace_id == workspace_id,
            view.c.relation_field_id == gone,
        )
        .values(placement=Placement.DATABASE.value, relation_field_id=None, updated_at=work.now)
    )
    for row in await _naming(work, workspace_id, database_id, field_key):
        await _drop_field(work, row, field_key)


async def remove_invalid_usages(work: UnitOfWork, schema: Schema, field_key: str) -> None:
    """Remove a field from the manifests that no longer fit it, after it was changed."""
    rows = await _naming(work, schema.workspace_id, schema.database_id, field_key)
    for row in rows:
        try:
            manifest = shapes.Manifest.model_validate(row.manifest)
            read_manifest(ViewKind(row.kind), manifest, schema.fields, work.now)
        except PlatformError:
            await _drop_field(work, row, field_key)


async def _naming(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_key: str
) -> Sequence[View]:
    """The views of a database that name a field, locked in the order of their ids."""
    return await work.rows(
        sa.select(view)
        .where(
            view.c.workspace_id == workspace_id,
            view.c.database_id == database_id,
            names_field(field_key),
        )
        .order_by(view.c.id)
        .with_for_update(),
        of=View,
    )


async def _drop_field(work: UnitOfWork, row: View, field_key: str) -> None:
    kind, manifest = without_field(ViewKind(row.kind), row.manifest, field_key)
    if manifest == row.manifest:
        return
    await work.execute(
        sa.update(view)
        .where(view.c.workspace_id == row.workspace_id, view.c.id == row.id)
        .values(
            kind=kind.value,
            manifest=manifest,
            definition_version=view.c.definition_version + 1,
            updated_at=next_updated_at(view.c.updated_at, work.now),
        )
    )


async def rewrite_manifest(
    work: UnitOfWork, workspace_id: Id, view_id: Id, manifest: JsonObject
) -> None:
    """Store a manifest in which a field has another key."""
    await work.execute(
        sa.update(view)
        .where(view.c.workspace_id == workspace_id, view.c.id == view_id)
        .values(
            manifest=manifest,
            definition_version=view.c.definition_version + 1,
            updated_at=next_updated_at(view.c.updated_at, work.now),
        )
    )


_MANIFEST = TypeAdapter(shapes.Manifest)


def _rows(workspace_id: Id) -> sa.Select[Any]:
    placed = view.c.item_id.in_(live_items(workspace_id, ITEM.id))
    return of_live_databases(workspace_id, view).where(view.c.item_id.is_(None) | placed)


def _problem(row: Row) -> str | None:
    if row["kind"] not in set(ViewKind):
        return f"unknown kind of view: {row['kind'][:50]}"
    return shape_problem(_MANIFEST, row["manifest"], "manifest")


VIEWS = BundleKind(
    name="view",
    stage=Stage.SCHEMA,
    file="databases.ndjson",
    table=view,
    rows=_rows,
    references={
        "database_id": "database",
        "item_id": "item",
        "relation_field_id": "field",
        "owner_user_id": USER,
    },
    required=("item_id", "owner_user_id"),
    contents=("manifest",),
    check=_problem,
)

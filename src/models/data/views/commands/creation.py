"""Inserting new views: their keys, their positions and the relation fields they name."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import insert, select

from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.core.keys import first_free, slug
from models.data.fields.queries import database_level, seen_field
from models.data.fields.rules.fields import Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.views.rules.kinds import Placement, ViewKind, ViewScope
from models.data.views.rules.manifest import read_manifest
from models.data.views.shapes import MAX_VIEWS, CreateView, ItemViewConfig, ViewShape
from models.data.views.tables import view
from runtime.advisory_locks import lock_name
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id


async def insert_views(
    work: UnitOfWork, actor: Actor, schema: Schema, bodies: Mapping[str, CreateView]
) -> list[ViewShape]:
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
    await work.execute(insert(view), rows)
    return [ViewShape.model_validate(row) for row in rows]


async def insert_item_view(
    work: UnitOfWork,
    schema: Schema,
    item_id: Id,
    label: str,
    body: ItemViewConfig,
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
    await work.execute(insert(view).values({**row, "id": made}))
    return made


class _KeyAndPosition(Protocol):
    key: str
    position: float


class _TakenKeys:
    """The keys and positions of the views of a database, which is locked for new views."""

    def __init__(self, schema: Schema, rows: Sequence[_KeyAndPosition]) -> None:
        self.schema = schema
        self.keys = {row.key for row in rows}
        self.last = max((row.position for row in rows), default=-1.0)

    @classmethod
    async def of(cls, work: UnitOfWork, schema: Schema) -> "_TakenKeys":
        await lock_views(work, schema.database_id)
        rows = await work.rows(
            select(view.c.key, view.c.position).where(
                view.c.workspace_id == schema.workspace_id,
                view.c.database_id == schema.database_id,
            ),
            of=_KeyAndPosition,
        )
        return cls(schema, rows)

    def row(
        self, work: UnitOfWork, label: str, key: str | None, kind: ViewKind, path: str
    ) -> dict[str, Any]:
        """The columns that every new view has: a free key, and the position after the last."""
        if len(self.keys) >= MAX_VIEWS:
            raise ConflictError(f"A database has at most {MAX_VIEWS} views. Delete one first.")
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
        raise ValidationError.at(place, "is needed by a view that is placed at a relation")
    if placement != Placement.RELATION and field_id is not None:
        raise ValidationError.at(place, "belongs to views that are placed at a relation")


async def _relates(work: UnitOfWork, actor: Actor, database_id: Id, field_id: Id) -> bool:
    found = await seen_field(work, actor, field_id)
    if found is None:
        raise NotFoundError("field")
    if found.kind != FieldKind.RELATION:
        return False
    sides = {str(found.database_id), found.settings.get("databaseId")}
    return str(database_id) in sides

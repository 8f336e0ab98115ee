"""Views: their table, and reading the shared ones of a database and the caller's personal ones."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH
from sqlmodel import Field, SQLModel

from models.content.items.queries import closed_items, sees_items
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.pagination import PageRequest
from models.core.references import rules
from models.data.fields.rows import DATABASE, FIELD, database_of, field_with_id, live_databases
from models.data.records.rules.query.plan import through_view
from models.data.records.shapes import RecordQuery
from models.data.views.rules.kinds import Placement, ViewKind, ViewScope
from models.data.views.shapes import ViewList, ViewShape
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of


class View(SQLModel, table=True):
    """A view of a database; `item_id` is set for one that stands in the tree by itself.

    `definition_version` counts the manifests it has had; `position` orders its siblings.
    """

    __tablename__ = "view"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.UniqueConstraint("workspace_id", "database_id", "key"),
        same_workspace("database_id", "database.id"),
        same_workspace("item_id", "item.id"),
        sa.ForeignKeyConstraint(["relation_field_id"], ["field.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["owner_user_id"], ["app_user.id"]),
        one_of("kind", ViewKind),
        one_of("placement", Placement),
        one_of("scope", ViewScope),
        sa.CheckConstraint("(scope = 'personal') = (owner_user_id IS NOT NULL)", name="owner"),
        sa.CheckConstraint("(placement = 'item') = (item_id IS NOT NULL)", name="item"),
        partial_index(
            "ix_view_relation_field_id", "relation_field_id", where="relation_field_id IS NOT NULL"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    database_id: Id
    item_id: Id | None = None
    key: str
    label: str
    kind: str
    placement: str
    manifest: dict[str, Any] = Field(sa_type=JSONB)
    relation_field_id: Id | None = None
    owner_user_id: Id | None = None
    scope: str
    locked: bool
    definition_version: int
    position: float
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


view = table_of(View)


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
    """One view of a database. Raises `NotFoundError`, also for a view of someone else's."""
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


_SINGLE_KEYS = (
    *("stackFieldKey", "orderFieldKey"),
    *("dateFieldKey", "endDateFieldKey", "coverFieldKey"),
)


def manifest_references(database: str, manifest: JsonObject) -> Iterator[rules.Reference]:
    """The fields and options that a view names."""
    shown = {key: value for key, value in manifest.items() if key != "fields"}
    yield from rules.query_references(database, shown)
    for name in _SINGLE_KEYS:
        yield from rules.key_at(database, manifest.get(name), name)
    yield from rules.key_at(database, manifest.get("cardFields"), "cardFields")
    for index, column in enumerate(manifest.get("fields") or ()):
        yield from rules.key_at(database, column.get("key"), "fields", index, "key")
    chart = manifest.get("chart") or {}
    yield from rules.key_at(database, chart.get("xFieldKey"), "chart", "xFieldKey")
    aggregate = chart.get("aggregate") or {}
    yield from rules.key_at(database, aggregate.get("field"), "chart", "aggregate", "field")
    questions = (manifest.get("form") or {}).get("fields")
    yield from rules.below(rules.question_references(database, questions), "form", "fields")


class _PlacedView(Protocol):
    """A view, with the relation field that it is placed at."""

    id: Id
    database_id: Id
    item_id: Id | None
    database_item_id: Id
    label: str
    manifest: JsonObject
    scope: str
    owner_user_id: Id | None
    relation_key: str | None
    relation_database_id: Id | None


async def view_definitions(
    work: UnitOfWork, actor: Actor, sought: rules.Sought
) -> Sequence[rules.Definition]:
    """The views that may name a thing."""
    if sought.database_id is None and sought.kind is not rules.SubjectKind.MEMBER:
        return []
    shown = (view.c.id, view.c.database_id, view.c.label, view.c.manifest, view.c.scope)
    statement = (
        live_databases(
            actor.workspace_id,
            *shown,
            view.c.owner_user_id,
            DATABASE.item_id.label("database_item_id"),
            view.c.item_id,
            FIELD.key.label("relation_key"),
            FIELD.database_id.label("relation_database_id"),
        )
        .join(view, view.c.database_id == DATABASE.id)
        .outerjoin(*field_with_id(view.c.relation_field_id))
        .where(_of_sought(sought), view.c.workspace_id == actor.workspace_id)
        .order_by(view.c.position, view.c.id)
    )
    return [
        rules.Definition(
            kind="view",
            id=row.id,
            label=row.label,
            scope=Scope.VIEWS_READ,
            item_id=row.item_id or row.database_item_id,
            owner_user_id=row.owner_user_id,
            database_id=row.database_id,
            document={"manifest": row.manifest},
            references=list(rules.cleared(_view_references(row))),
        )
        for row in await work.rows(statement, of=_PlacedView)
    ]


def _of_sought(sought: rules.Sought) -> sa.ColumnElement[bool]:
    if sought.kind is rules.SubjectKind.MEMBER:
        return view.c.owner_user_id == Id(sought.subject.id)
    # A view placed at a relation may be one of the related database.
    database_id = sought.database_id
    return sa.or_(DATABASE.id == database_id, FIELD.database_id == database_id)


def _view_references(row: _PlacedView) -> Iterator[rules.Reference]:
    yield from rules.below(manifest_references(str(row.database_id), row.manifest), "manifest")
    if row.relation_key is not None:
        subject = rules.field_subject(str(row.relation_database_id), row.relation_key)
        yield rules.Reference(subject=subject, place=("relationFieldId",), by_id=True)
    if row.scope == ViewScope.PERSONAL.value:
        owner = rules.Subject(rules.SubjectKind.MEMBER, str(row.owner_user_id))
        yield rules.Reference(subject=owner, place=("ownerUserId",))

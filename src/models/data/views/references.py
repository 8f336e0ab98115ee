"""References of views."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import sqlalchemy as sa

from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.references import rules
from models.data.fields.rows import DATABASE, FIELD, field_with_id, live_databases
from models.data.views.rules.kinds import ViewScope
from models.data.views.tables import view
from runtime.database import UnitOfWork

_SINGLE_KEYS = ("stackFieldKey", "dateFieldKey", "endDateFieldKey", "coverFieldKey")


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

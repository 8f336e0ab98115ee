"""Reading databases and their fields, and checking what their settings refer to."""

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.content.items.joins import ITEM, live_item_of
from models.content.items.queries import PlacementOf, placement_of, sees_items
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id, JsonObject
from models.core.expressions.rules.typed_reads import FieldsOf, reads_of
from models.core.references import rules
from models.data.fields import rows as field_rows
from models.data.fields.rows import DATABASE, live_databases
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs, Schema
from models.data.fields.shapes import FieldShape
from models.data.fields.tables import DatabaseField, RemovedField, database, field, removed_field
from runtime.database import UnitOfWork, columns_of
from runtime.errors import DeniedError, NotFoundError
from runtime.ids import parse_id
from runtime.postgresql.statements import Prefetch, PreparedStatement

visible = placement_of(database)
"""The placement of a database: `await visible(work, workspace_ids, database_id, user_id)`."""
database_level = visible.level
"""The level of an actor on a database: `await database_level(work, actor, database_id)`."""

visible_field = PlacementOf(
    field_rows.placed_databases()
    .join(field, field.c.database_id == database.c.id)
    .where(
        field.c.id == sa.bindparam("id", type_=sa.Uuid),
        field.c.workspace_id == database.c.workspace_id,
    )
)
"""The placement of a field's database: `await visible_field(work, workspace_ids, field_id, …)`."""


async def require_edit(work: UnitOfWork, actor: Actor, database_id: Id, denial: str) -> None:
    """Raise `NotFoundError` for a database the actor does not see, `DeniedError` without edit.

    `denial` says what edit access is needed for.
    """
    level = await database_level(work, actor, database_id)
    if level < Level.VIEW:
        raise NotFoundError("database")
    if level < Level.EDIT:
        raise DeniedError(denial)


def seen_databases(actor: Actor, ids: Sequence[Id]) -> sa.Select[Any]:
    """The ids of the given databases that the actor sees."""
    return sa.select(database.c.id).where(
        database.c.workspace_id == actor.workspace_id,
        database.c.id == sa.func.any(ids),
        sees_items(actor, database.c.item_id),
    )


async def seen_labels(work: UnitOfWork, actor: Actor, ids: Collection[Id]) -> dict[Id, str]:
    """The labels of the given databases, as far as the actor sees them."""
    rows = await work.rows(
        field_rows.open_databases(actor, field_rows.DATABASE.id, field_rows.DATABASE.label).where(
            field_rows.DATABASE.id == sa.func.any(list(ids))
        )
    )
    return {row.id: row.label for row in rows}


async def database_label(work: UnitOfWork, workspace_id: Id, database_id: Id) -> str | None:
    """The label of a database outside the trash."""
    label: str | None = await work.scalar(
        sa.select(ITEM.title)
        .select_from(database)
        .join(*live_item_of(database))
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
    )
    return label


async def stored_label(work: UnitOfWork, workspace_id: Id, database_id: Id) -> str:
    """The label of an existing database, be it in the trash or without an item."""
    label: str = await work.scalar(
        sa.select(database.c.label).where(
            database.c.workspace_id == workspace_id, database.c.id == database_id
        )
    )
    return label


def prefetched_schema(database_id: Id) -> Prefetch:
    """The statement of `load_schema`."""
    return Prefetch(_SCHEMA, {"database_id": database_id})


async def load_schema(
    work: UnitOfWork, workspace_id: Id, database_id: Id, resource: str = "database"
) -> Schema:
    """The fields of a database, in order.

    Raises `NotFoundError` of `resource` when there is no such database outside the trash.
    """
    parameters = {"workspace_id": workspace_id, "database_id": database_id}
    return schema_of(await _SCHEMA.first(work, parameters), resource)


async def fields_changed_at(work: UnitOfWork, workspace_id: Id, database_id: Id) -> datetime:
    """The moment of the last change of a field that a database has."""
    found: datetime = await work.scalar(
        sa.select(sa.func.max(field.c.updated_at)).where(
            field.c.workspace_id == workspace_id, field.c.database_id == database_id
        )
    )
    return found


async def get_field(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_id: Id
) -> FieldShape:
    """A field of a database. Raises `NotFoundError`."""
    row = await work.one(
        sa.select(field).where(
            field.c.workspace_id == workspace_id,
            field.c.database_id == database_id,
            field.c.id == field_id,
        ),
        "field",
        of=DatabaseField,
    )
    return field_shape(row)


async def shown_fields(
    work: UnitOfWork, workspace_id: Id, database_ids: Sequence[Id]
) -> dict[Id, list[FieldShape]]:
    """The fields of these databases as the interface shows them, in order."""
    rows = await work.rows(
        sa.select(field)
        .where(field.c.workspace_id == workspace_id, field.c.database_id.in_(database_ids))
        .order_by(field.c.position, field.c.key),
        of=DatabaseField,
    )
    fields: dict[Id, list[FieldShape]] = {database_id: [] for database_id in database_ids}
    for row in rows:
        fields[row.database_id].append(field_shape(row))
    return fields


async def seen_field(work: UnitOfWork, actor: Actor, field_id: Id) -> FieldShape | None:
    """A field, if the actor sees its database."""
    row = await work.first(
        field_rows.open_databases(actor, *field.c)
        .join(field, field.c.database_id == database.c.id)
        .where(field.c.workspace_id == actor.workspace_id, field.c.id == field_id),
        of=DatabaseField,
    )
    return None if row is None else field_shape(row)


async def inverse_of(work: UnitOfWork, actor: Actor, relation: FieldShape) -> FieldShape | None:
    """The field that shows a relation from the other side; None of a symmetric one."""
    inverse_id = Id(relation.settings["inverseFieldId"])
    if inverse_id == relation.id:
        return None
    row = await work.first(
        sa.select(field).where(
            field.c.workspace_id == actor.workspace_id, field.c.id == inverse_id
        ),
        of=DatabaseField,
    )
    return None if row is None else field_shape(row)


def field_with_key(workspace_id: Id, database_id: Id, key: str) -> sa.ScalarSelect[Id]:
    return (
        sa.select(field.c.id)
        .where(
            field.c.workspace_id == workspace_id,
            field.c.database_id == database_id,
            field.c.key == key,
        )
        .scalar_subquery()
    )


def named_indexes(workspace_id: Id) -> sa.Select[Any]:
    """The ids of the side indexes that fields have."""
    return sa.select(field.c.index_id).where(
        field.c.workspace_id == workspace_id, field.c.index_id.is_not(None)
    )


def next_number_of(workspace_id: Id, database_id: Id) -> sa.ScalarSelect[int]:
    """The next value of the auto_number field of a database."""
    return (
        sa.select(database.c.next_number)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .scalar_subquery()
    )


async def load_catalog(
    work: UnitOfWork, workspace_id: Id, database_ids: Collection[Id]
) -> dict[Id, FieldSpecs]:
    """The fields of these databases and of all that relations connect with them.

    Databases in the trash are among them, because they may be restored.
    """
    start = sa.select(
        sa.func.unnest(sa.literal(list(database_ids), sa.ARRAY(sa.Uuid))).label("id")
    ).cte("connected", recursive=True)
    connected = start.union(
        sa.select(sa.cast(field.c.settings["databaseId"].astext, sa.Uuid))
        .join(start, start.c.id == field.c.database_id)
        .where(field.c.workspace_id == workspace_id, field.c.kind == FieldKind.RELATION.value)
    )
    rows = await work.rows(
        sa.select(field)
        .where(
            field.c.workspace_id == workspace_id, field.c.database_id.in_(sa.select(connected.c.id))
        )
        .order_by(field.c.position, field.c.key),
        of=DatabaseField,
    )
    catalog: dict[Id, FieldSpecs] = {database_id: {} for database_id in database_ids}
    for row in rows:
        catalog.setdefault(row.database_id, {})[row.key] = field_rows.field_spec(row)
    return catalog


async def removed_keys(
    work: UnitOfWork, workspace_id: Id, database_ids: Collection[Id]
) -> dict[Id, set[str]]:
    """The keys under which records of these databases still store values of removed fields."""
    rows = await work.rows(
        sa.select(removed_field.c.database_id, removed_field.c.key).where(
            removed_field.c.workspace_id == workspace_id,
            removed_field.c.database_id == sa.func.any(list(database_ids)),
        )
    )
    keys: dict[Id, set[str]] = {database_id: set() for database_id in database_ids}
    for row in rows:
        keys[row.database_id].add(row.key)
    return keys


async def find_removed(work: UnitOfWork, workspace_id: Id, field_id: Id) -> RemovedField | None:
    """A removed field that records still store values of."""
    this = (removed_field.c.workspace_id == workspace_id, removed_field.c.id == field_id)
    return await work.first(sa.select(removed_field).where(*this), of=RemovedField)


class DatabaseWithFields(Protocol):
    """A database, and its fields as text."""

    workspace_id: Id
    database_id: Id
    fields: str


def schema_of(row: DatabaseWithFields | None, resource: str = "database") -> Schema:
    """The schema in a row of `schemas`. Raises `NotFoundError` of `resource` when there is none."""
    if row is None:
        raise NotFoundError(resource)
    return Schema(row.workspace_id, row.database_id, field_rows.read_fields(row.fields))


def schemas() -> sa.Select[Any]:
    """Select databases outside the trash with their fields; the caller adds which databases.

    The statement takes the parameter `workspace_id`.
    """
    return field_rows.live_databases(
        sa.bindparam("workspace_id", type_=sa.Uuid),
        database.c.workspace_id,
        database.c.id.label("database_id"),
        field_rows.fields_as_text().label("fields"),
    )


_SCHEMA = PreparedStatement(
    schemas().where(database.c.id == sa.bindparam("database_id", type_=sa.Uuid)), DatabaseWithFields
)


def field_shape(row: DatabaseField) -> FieldShape:
    """A field as the interface shows it."""
    return FieldShape.model_validate({**columns_of(row), "order": row.position})


KindAndSettings = tuple[FieldKind, JsonObject | None]
"""The kind and the settings of a field in a body."""

ReferenceCheck = Callable[[UnitOfWork, Actor, Id], Awaitable[None]]
"""Raises `NotFoundError` or `DeniedError` when the actor may not name what has this id."""

_SETTINGS = {FieldKind.RELATION: "databaseId", FieldKind.BUTTON: "actionId"}
"""The setting of a field kind that names something."""


def check_reference_with(kind: FieldKind, check: ReferenceCheck) -> None:
    """Have what fields of a kind name checked by `check`; one for each kind.

    A resource of a higher domain that fields may name registers its check;
    `models.registrations` lists them.
    """
    _CHECKS[kind] = check


async def check_references(
    work: UnitOfWork, actor: Actor, fields: Iterable[KindAndSettings]
) -> None:
    """Check that the actor may name what these fields name, before anything else is checked.

    A value that is no id is left to the check of the settings. Raises `NotFoundError` for what the
    actor does not see, `DeniedError` without edit access to a database that would get the other
    side of a relation.
    """
    named = {
        (kind, found)
        for kind, settings in fields
        if kind in _SETTINGS and (found := _id((settings or {}).get(_SETTINGS[kind]))) is not None
    }
    for kind, id_ in sorted(named):
        await _CHECKS[kind](work, actor, id_)


def _id(value: object) -> Id | None:
    return parse_id(value) if isinstance(value, str) else None


async def _check_database(work: UnitOfWork, actor: Actor, database_id: Id) -> None:
    needed = (
        "A relation needs edit access to the database it points into, which gets its other side."
    )
    await require_edit(work, actor, database_id, needed)


_CHECKS: dict[FieldKind, ReferenceCheck] = {FieldKind.RELATION: _check_database}


_KEYWORDS = frozenset({"false", "in", "null", "true"})
"""Keys that formulas spell in capitals."""


async def field_definitions(
    work: UnitOfWork, actor: Actor, sought: rules.Sought
) -> Sequence[rules.Definition]:
    """The fields and the layouts that may name a thing."""
    found: list[rules.Definition] = []
    if sought.database_id is not None or sought.kind is rules.SubjectKind.ACTION:
        found += await _fields(work, actor.workspace_id, sought)
    if sought.database_id is not None or sought.kind is rules.SubjectKind.VIEW:
        found += await _layouts(work, actor.workspace_id, sought)
    return found


def field_references(
    database: str, spec: FieldSpec, fields: Mapping[Id, FieldSpecs]
) -> Iterator[rules.Reference]:
    """The fields and things that the settings of a field name."""
    settings = spec.settings
    match spec.kind:
        case FieldKind.RELATION:
            yield from rules.named_at(
                rules.SubjectKind.DATABASE, settings["databaseId"], "databaseId"
            )
            for key, other in fields.get(spec.target_id, {}).items():
                if other.id == spec.inverse_id and other.id != spec.id:
                    subject = rules.field_subject(settings["databaseId"], key)
                    place = ("inverseFieldId",)
                    yield rules.Reference(subject=subject, place=place, by_id=True, cleared=True)
        case FieldKind.FORMULA:
            yield from _formula_references(database, settings["expression"])
        case FieldKind.ROLLUP | FieldKind.LOOKUP:
            yield from rules.key_at(database, settings["relationFieldKey"], "relationFieldKey")
            way = fields.get(Id(database), {}).get(settings["relationFieldKey"])
            if way is not None and way.relation:
                target = str(way.target_id)
                yield from rules.key_at(target, settings["targetFieldKey"], "targetFieldKey")
        case FieldKind.BUTTON:
            yield from rules.named_at(
                rules.SubjectKind.ACTION, settings.get("actionId"), "actionId"
            )
            for name, binding in (settings.get("bindings") or {}).items():
                yield from _button_references(database, binding, "bindings", name, "value")


def _default_references(database: str, spec: FieldSpec) -> Iterator[rules.Reference]:
    """The options that the default of a field names, by their keys or their names."""
    text = spec.default or ""
    listed = json.loads(text) if spec.kind is FieldKind.MULTI_SELECT and text else [text]
    named = {str(one).casefold() for one in listed}
    for option in spec.options:
        if named & {option.key.casefold(), option.name.casefold()}:
            subject = rules.Subject(rules.SubjectKind.OPTION, database, spec.key, option.key)
            yield rules.Reference(subject=subject, place=("defaultValue",))


def _formula_references(database: str, expression: str) -> Iterator[rules.Reference]:
    reads = reads_of(expression, {"record": FieldsOf(database)})
    for reference in rules.text_references(reads, "expression"):
        key = reference.subject.key.lower()
        spelled = reference.subject.key.isupper() and key in _KEYWORDS
        yield (
            replace(reference, subject=rules.field_subject(database, key)) if spelled else reference
        )


def _button_references(database: str, binding: object, *place: str) -> Iterator[rules.Reference]:
    if not isinstance(binding, dict):
        return
    if binding.get("type") == "field":
        yield from rules.key_at(database, binding.get("value"), *place)
    elif binding.get("type") == "expression" and isinstance(binding.get("value"), str):
        variables = {"record": FieldsOf(database)}
        yield from rules.text_references(reads_of(binding["value"], variables), *place)


async def _fields(
    work: UnitOfWork, workspace_id: Id, sought: rules.Sought
) -> Sequence[rules.Definition]:
    """The fields of the databases that relations connect, or the buttons of an action."""
    ids = [] if sought.database_id is None else [sought.database_id]
    if sought.kind is rules.SubjectKind.ACTION:
        buttons = sa.select(field.c.database_id).where(
            field.c.workspace_id == workspace_id,
            field.c.kind == FieldKind.BUTTON.value,
            field.c.settings["actionId"].astext == sought.subject.id,
        )
        ids = [row.database_id for row in await work.rows(buttons)]
    if not ids:
        return []
    catalog = await load_catalog(work, workspace_id, ids)
    placed = await _placed(work, workspace_id, DATABASE.id.in_(list(catalog)))
    return [
        rules.Definition(
            kind="field",
            id=spec.id,
            label=f"{spec.label} of {placed[database_id].label}",
            scope=Scope.DATABASES_READ,
            item_id=placed[database_id].item_id,
            database_id=database_id,
            document={"settings": spec.settings},
            references=[
                *rules.below(field_references(str(database_id), spec, catalog), "settings"),
                *_default_references(str(database_id), spec),
            ],
        )
        for database_id, fields in catalog.items()
        if database_id in placed
        for spec in fields.values()
    ]


async def _placed(
    work: UnitOfWork, workspace_id: Id, condition: sa.ColumnElement[bool]
) -> Mapping[Id, Any]:
    """The databases outside the trash with their labels, items and layouts."""
    columns = (DATABASE.id, ITEM.title.label("label"), DATABASE.item_id, DATABASE.record_layout)
    statement = live_databases(workspace_id, *columns).where(condition)
    return {row.id: row for row in await work.rows(statement)}


def layout_references(database: str, layout: JsonObject) -> Iterator[rules.Reference]:
    """The fields and views that the layout of record pages names."""
    for name in ("propertyOrder", "hiddenFieldKeys", "pinnedFieldKeys"):
        yield from rules.key_at(database, layout.get(name), name)
    for index, section in enumerate(layout.get("sections") or ()):
        yield from rules.key_at(database, section.get("fieldKeys"), "sections", index, "fieldKeys")
    for key, relation in (layout.get("relationViews") or {}).items():
        subject = rules.field_subject(database, key)
        yield rules.Reference(
            subject=subject, place=("relationViews",), spelling=rules.Spelling.KEY
        )
        place = ("relationViews", key, "defaultViewId")
        yield from rules.named_at(rules.SubjectKind.VIEW, relation.get("defaultViewId"), *place)


async def _layouts(
    work: UnitOfWork, workspace_id: Id, sought: rules.Sought
) -> Sequence[rules.Definition]:
    # A view may be the default one of relations from any database.
    condition = sa.true() if sought.database_id is None else DATABASE.id == sought.database_id
    placed = await _placed(work, workspace_id, condition)
    return [
        rules.Definition(
            kind="record_layout",
            id=row.id,
            label=f"Record layout of {row.label}",
            scope=Scope.DATABASES_READ,
            item_id=row.item_id,
            database_id=row.id,
            document={"recordLayout": row.record_layout},
            references=list(
                rules.cleared(
                    rules.below(layout_references(str(row.id), row.record_layout), "recordLayout")
                )
            ),
        )
        for row in placed.values()
    ]

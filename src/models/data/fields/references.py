"""References of fields and of the layouts of record pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from models.content.items.joins import ITEM
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.expressions.rules.typed_reads import FieldsOf, reads_of
from models.core.references import rules
from models.data.fields.queries import load_catalog
from models.data.fields.rows import DATABASE, live_databases
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs
from models.data.fields.tables import field
from runtime.database import UnitOfWork

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
            references=list(
                rules.below(field_references(str(database_id), spec, catalog), "settings")
            ),
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

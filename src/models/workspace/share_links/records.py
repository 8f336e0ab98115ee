"""The records that visitors see: of a shared database or view, and in figures of a dashboard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from models.content.items.queries import item_of_target, placement, target_of
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemRow
from models.core.access.rules import Level, level_on
from models.core.base import Id, JsonObject
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import TITLE_KEY, FieldKind, FieldSpec, Schema
from models.data.records.queries import query_records
from models.data.records.shapes import RecordGroup, RecordQuery
from models.data.views.queries import view_definition
from models.people.members import role_of
from models.workspace.share_links.shapes import (
    SharedField,
    SharedFigures,
    SharedOption,
    SharedPoint,
    SharedRecord,
    SharedRecords,
)
from models.workspace.share_links.tables import ShareLink
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, UnsupportedError, ValidationError
from runtime.ids import parse_id

_PRIVATE = frozenset({FieldKind.PERSON, FieldKind.FILE})
"""Kinds of stored fields that a visitor does not see: they name people or open files."""


@dataclass(frozen=True, slots=True)
class SharedTable:
    """A shared database, or one of its views, and the fields that visitors see."""

    database_id: Id
    manifest: JsonObject
    """The manifest of the view; empty for a database."""
    fields: Sequence[FieldSpec]


async def shared_table(work: UnitOfWork, item: ItemRow) -> SharedTable:
    """The database or view behind an item. Raises `NotFoundError`.

    Fields whose values come from elsewhere (relations and what is computed) are left out: they
    may come from databases that are not shared.
    """
    database_id = target_of(item)
    manifest: JsonObject = {}
    if item.kind == ItemKind.VIEW:
        view = await view_definition(work, item.workspace_id, target_of(item))
        database_id, manifest = view.database_id, view.manifest
    schema = await load_schema(work, item.workspace_id, database_id)
    return SharedTable(database_id, manifest, _open_fields(schema, manifest))


async def shared_records(
    work: UnitOfWork, keys: KeyRing, item: ItemRow, limit: int, cursor: str | None
) -> SharedRecords:
    """A page of the records of the database or view behind an item. Raises `NotFoundError`."""
    table = await shared_table(work, item)
    return await _records(work, keys, item.workspace_id, table, limit, cursor)


async def _records(
    work: UnitOfWork,
    keys: KeyRing,
    workspace_id: Id,
    table: SharedTable,
    limit: int,
    cursor: str | None = None,
) -> SharedRecords:
    fields = table.fields
    query = {
        "filter": table.manifest.get("filter"),
        "sorts": table.manifest.get("sorts"),
        "fields": [spec.key for spec in fields],
        "limit": limit,
        "cursor": cursor,
    }
    body = RecordQuery.model_validate(query)
    result = await query_records(work, workspace_id, table.database_id, body, keys)
    return SharedRecords(
        fields=[_field(spec) for spec in fields],
        records=[
            SharedRecord(
                id=record.id,
                title=record.title,
                data={
                    spec.key: record.data[spec.key] for spec in fields if spec.key in record.data
                },
            )
            for record in result.records
        ],
        cursor=result.cursor,
    )


def _open_fields(schema: Schema, manifest: JsonObject) -> list[FieldSpec]:
    """The fields a visitor sees: of a view, those it shows."""
    columns = manifest.get("fields") or []
    hidden = {column["key"] for column in columns if not column.get("visible", True)}
    return [
        spec
        for spec in schema.fields.values()
        if spec.stored and spec.kind not in _PRIVATE and spec.key not in hidden
    ]


def _field(spec: FieldSpec) -> SharedField:
    return SharedField(
        key=spec.key,
        label=spec.label,
        kind=spec.kind,
        options=[SharedOption.model_validate(option) for option in spec.options],
    )


_FIGURES = frozenset({"chart", "number", "view"})
_LISTED = 10
"""The records of a list on a dashboard."""


class Widget(Protocol):
    """A block of a dashboard."""

    id: Id
    kind: str
    content: JsonObject


async def figures_of(
    work: UnitOfWork, keys: KeyRing, link: ShareLink, blocks: Sequence[Widget]
) -> Mapping[Id, SharedFigures]:
    """The values that charts, numbers and lists show to visitors, by the ids of their blocks.

    Databases that the link's creator does not see now are left out, as are fields that visitors do
    not see.
    """
    figures: dict[Id, SharedFigures] = {}
    for block in blocks:
        if block.kind not in _FIGURES:
            continue
        try:
            shown = await _figures(work, keys, link, block.kind, block.content)
        except (NotFoundError, ValidationError, UnsupportedError):
            # Its database or field was deleted or changed, or the query takes too long.
            continue
        if shown is not None:
            figures[block.id] = shown
    return figures


async def _figures(
    work: UnitOfWork, keys: KeyRing, link: ShareLink, kind: str, content: JsonObject
) -> SharedFigures | None:
    workspace_id, manifest = link.workspace_id, JsonObject()
    database_id = parse_id(content.get("databaseId", ""))
    chart = content
    if kind == "view":
        view = await view_definition(work, workspace_id, Id(content["viewId"]))
        database_id, manifest = view.database_id, view.manifest
        chart = {**(manifest.get("chart") or {}), "filter": manifest.get("filter")}
    if database_id is None or not await _maker_sees_database(work, link, database_id):
        return None
    schema = await load_schema(work, workspace_id, database_id)
    table = SharedTable(database_id, manifest, _open_fields(schema, manifest))
    if kind == "view" and view.kind != "chart":
        records = await _records(work, keys, workspace_id, table, _LISTED)
        return SharedFigures(label="", x_label=None, total=None, points=[], records=records)
    return await _charted(work, keys, workspace_id, table, chart)


async def _maker_sees_database(work: UnitOfWork, link: ShareLink, database_id: Id) -> bool:
    maker = link.created_by_user_id
    item = await item_of_target(work, link.workspace_id, None, database_id)
    if item is None:
        return False
    place = await placement(work, [link.workspace_id], item.id, maker)
    role = await role_of(work, link.workspace_id, maker)
    return place is not None and role is not None and level_on(place, role) >= Level.VIEW


async def _charted(
    work: UnitOfWork, keys: KeyRing, workspace_id: Id, table: SharedTable, chart: JsonObject
) -> SharedFigures | None:
    """The figure of all records and of each group; None for a field that visitors do not see."""
    aggregate = chart.get("aggregate") or {"op": "count"}
    x_key, measured = chart.get("xFieldKey"), aggregate.get("field")
    fields = {spec.key: spec for spec in table.fields}
    if {key for key in (x_key, measured) if key is not None} - {*fields, TITLE_KEY}:
        return None
    groups = [{"field": x_key, "granularity": chart.get("granularity")}] if x_key else None
    query = {"filter": chart.get("filter"), "groupBy": groups, "limit": 1, "fields": [TITLE_KEY]}
    body = RecordQuery.model_validate({**query, "aggregates": [{**aggregate, "as": "figure"}]})
    result = await query_records(work, workspace_id, table.database_id, body, keys)
    x_field = fields.get(x_key) if x_key else None
    named = fields.get(measured) if measured else None
    op = str(aggregate["op"]).replace("_", " ").capitalize()
    return SharedFigures(
        label=f"{op}: {named.label}" if named else "Number of records",
        x_label=x_field.label if x_field else None,
        total=_number((result.aggregates or {}).get("figure")),
        points=[_point(x_field, group) for group in result.groups or [] if _valued(group)],
        records=None,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _valued(group: RecordGroup) -> bool:
    return _number(group.aggregates["figure"]) is not None


def _point(x_field: FieldSpec | None, group: RecordGroup) -> SharedPoint:
    option = next(
        (one for one in (x_field.options if x_field else ()) if one.key == group.key), None
    )
    name = "Empty" if group.value is None else group.key if option is None else option.name
    value = _number(group.aggregates["figure"]) or 0
    return SharedPoint(name=name, value=value, color=None if option is None else option.color)

"""The content that a share link shows: the content of its item, and nothing around it.

Visitors see the records of a shared database or view, and figures in a dashboard.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import sqlalchemy as sa
from pydantic import JsonValue

from models.content.files.queries import AssetRow, FileRow, file_of_item, find_asset, unhidden_files
from models.content.files.rules import AssetClaim, Content, download_url
from models.content.items.joins import ITEM, live_items
from models.content.items.queries import find_item, item_of_target, placement, target_of
from models.content.items.rules import AccessMode, ItemKind
from models.content.items.shapes import ItemRow
from models.content.surfaces.queries import blocks_of, nested
from models.content.surfaces.rules.contents import RESOURCES, references
from models.content.surfaces.shapes import BlockTree
from models.core.access.rules import Level, Role, level_on
from models.core.base import Id, JsonObject
from models.core.pagination import page_request
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import TITLE_KEY, FieldKind, FieldSpec, Schema
from models.data.forms.shapes import PublicOption
from models.data.records.queries import query_records
from models.data.records.shapes import RecordGroup, RecordQuery
from models.data.views.queries import view_definition
from models.people.members import role_of
from models.workspace.share_links import links
from models.workspace.share_links.visitors import ShareLink, Visitor, live_link
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, UnsupportedError, ValidationError
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
) -> links.SharedRecords:
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
) -> links.SharedRecords:
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
    return links.SharedRecords(
        fields=[_field(spec) for spec in fields],
        records=[
            links.SharedRecord(
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


def _field(spec: FieldSpec) -> links.SharedField:
    return links.SharedField(
        key=spec.key,
        label=spec.label,
        kind=spec.kind,
        options=[PublicOption.model_validate(option) for option in spec.options],
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
) -> Mapping[Id, links.SharedFigures]:
    """The values that charts, numbers and lists show to visitors, by the ids of their blocks.

    Databases that the link's creator does not see now are left out, as are fields that visitors do
    not see.
    """
    figures: dict[Id, links.SharedFigures] = {}
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
) -> links.SharedFigures | None:
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
        return links.SharedFigures(label="", x_label=None, total=None, points=[], records=records)
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
) -> links.SharedFigures | None:
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
    return links.SharedFigures(
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


def _point(x_field: FieldSpec | None, group: RecordGroup) -> links.SharedPoint:
    option = next(
        (one for one in (x_field.options if x_field else ()) if one.key == group.key), None
    )
    name = "Empty" if group.value is None else group.key if option is None else option.name
    value = _number(group.aggregates["figure"]) or 0
    return links.SharedPoint(name=name, value=value, color=None if option is None else option.color)


async def visit(
    work: UnitOfWork, keys: KeyRing, visitor: Visitor, limit: int, cursor: str | None
) -> links.Visit:
    """The shared item with its content, a page of it where it is long.

    Raises the same `NotFoundError` for all that is missing, and `ValidationError` for a cursor of
    another list.
    """
    link = visitor.link
    try:
        shown = await find_item(work, link.workspace_id, link.workspace_item_id)
        content = await _content(work, keys, visitor, shown, limit, cursor)
    except NotFoundError:
        raise NotFoundError("share link") from None
    return links.Visit(
        item=links.SharedItem.model_validate(shown),
        content=content,
        allow_download=link.allow_download,
        session=visitor.session,
        session_expires_at=visitor.expires_at,
    )


async def _content(
    work: UnitOfWork,
    keys: KeyRing,
    visitor: Visitor,
    shown: ItemRow,
    limit: int,
    cursor: str | None,
) -> links.SharedContent:
    match ItemKind(shown.kind):
        case ItemKind.FOLDER:
            return await _folder(work, keys, visitor, limit, cursor)
        case ItemKind.DATABASE | ItemKind.VIEW:
            return await shared_records(work, keys, shown, limit, cursor)
        case ItemKind.FILE:
            return await _file(work, keys, visitor)
        case ItemKind.FORM:
            return links.SharedForm(form_url=f"/v1/forms/{shown.id}")
        case _:
            return await _surface(work, keys, visitor, target_of(shown))


async def _folder(
    work: UnitOfWork, keys: KeyRing, visitor: Visitor, limit: int, cursor: str | None
) -> links.SharedFolder:
    link = visitor.link
    page = page_request(keys, limit, cursor, "share link children", link.id)
    statement = (
        live_items(link.workspace_id)
        .where(
            ITEM.parent_item_id == link.workspace_item_id,
            ITEM.access_mode == AccessMode.OPEN.value,
            ITEM.archived.is_(False),
        )
        .order_by(ITEM.position, ITEM.id)
        .limit(page.fetch)
    )
    if page.after is not None:
        statement = statement.where(sa.tuple_(ITEM.position, ITEM.id) > sa.tuple_(*page.after))
    found = page.of(await work.rows(statement), lambda row: (row.position, row.id))
    return links.SharedFolder(
        children=[links.SharedItem.model_validate(row) for row in found.items], cursor=found.cursor
    )


async def _file(work: UnitOfWork, keys: KeyRing, visitor: Visitor) -> links.SharedFile:
    row = await file_of(work, visitor.link)
    url = download_url(keys, row.workspace_id, row.id, _claim(visitor))
    return links.SharedFile(
        name=row.name,
        mime_type=row.mime_type,
        byte_size=row.byte_size,
        download_url=url if visitor.link.allow_download else None,
        created_at=row.created_at,
    )


async def file_of(work: UnitOfWork, link: ShareLink) -> FileRow:
    """The file that a link's item places. Raises `NotFoundError`."""
    return await file_of_item(work, link.workspace_id, link.workspace_item_id)


async def _surface(
    work: UnitOfWork, keys: KeyRing, visitor: Visitor, surface_id: Id
) -> links.SharedSurface:
    workspace_id = visitor.link.workspace_id
    rows = await blocks_of(work, workspace_id, surface_id)
    urls: dict[str, str] = {}
    if visitor.link.allow_download:
        named = references([row.content for row in rows])
        wanted = [reference.id for reference in named if reference.resource == "file"]
        for file_id in await _open_files(work, visitor, wanted):
            urls[str(file_id)] = download_url(keys, workspace_id, file_id, _claim(visitor))
    figures = await figures_of(work, keys, visitor.link, rows)
    return links.SharedSurface(
        blocks=[_shown_block(tree, urls, figures) for tree in nested(rows, None)]
    )


async def _open_files(work: UnitOfWork, visitor: Visitor, file_ids: Sequence[Id]) -> list[Id]:
    """The files among these that every viewer of the workspace sees."""
    if not file_ids:
        return []
    any_viewer = replace(visitor.actor, role=Role.VIEWER)
    rows = await work.rows(unhidden_files(any_viewer, file_ids))
    return [row.id for row in rows]


def _claim(visitor: Visitor) -> AssetClaim:
    return AssetClaim(visitor.expires_at, visitor.link.id)


def _shown_block(
    tree: BlockTree, urls: dict[str, str], figures: Mapping[Id, links.SharedFigures]
) -> links.SharedBlock:
    return links.SharedBlock(
        id=tree.id,
        kind=tree.kind,
        content=_without_references(tree.content, urls),
        order=tree.order,
        x=tree.x,
        y=tree.y,
        w=tree.w,
        h=tree.h,
        figures=figures.get(tree.id),
        children=[_shown_block(child, urls, figures) for child in tree.children],
    )


def _without_references(value: JsonValue, urls: dict[str, str]) -> JsonValue:
    """Content without references: a visitor does not learn of people, items and records."""
    if isinstance(value, list):
        return [_without_references(entry, urls) for entry in value]
    if not isinstance(value, dict):
        return value
    content: JsonObject = {
        key: _without_references(entry, urls)
        for key, entry in value.items()
        if key not in RESOURCES
    }
    url = urls.get(str(value.get("fileId")))
    return content if url is None else {**content, "downloadUrl": url}


async def open_asset(work: UnitOfWork, keys: KeyRing, file_id: Id | None, token: str) -> Content:
    """The file a download URL opens.

    A URL given by a share link also ends with the link and its `allowDownload`.
    Raises the same `NotFoundError` for every fault.
    """
    file, claim = await find_asset(work, keys, file_id, token)
    if claim.share_link_id is not None:
        try:
            link = await live_link(work, claim.share_link_id)
        except NotFoundError:
            raise NotFoundError("file") from None
        if not link.allow_download or link.workspace_id != file.workspace_id:
            raise NotFoundError("file")
    return _file_content(file)


async def open_shared_file(work: UnitOfWork, visitor: Visitor) -> Content:
    """The file that a link shares.

    Raises `UnsupportedError` for an item that is no file, and `DeniedError` when the link does not
    allow downloads.
    """
    link = visitor.link
    if link.kind != ItemKind.FILE:
        raise UnsupportedError(f"A shared {link.kind} has no file to download.")
    if not link.allow_download:
        raise DeniedError("This link does not allow downloads.")
    return _file_content(await file_of(work, link))


def _file_content(row: FileRow | AssetRow) -> Content:
    return Content(
        name=row.name,
        mime_type=row.mime_type,
        byte_size=row.byte_size,
        sha256=row.sha256,
        object_key=row.object_key,
    )

"""The records that a share link of a database or a view shows."""

from models.content.items.queries import target_of
from models.content.items.rows import ItemRow
from models.content.items.rules import ItemKind
from models.core.base import JsonObject
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.records.queries.records import query_records
from models.data.records.shapes import RecordQuery
from models.data.views.queries import view_definition
from models.workspace.share_links.shapes import (
    SharedField,
    SharedOption,
    SharedRecord,
    SharedRecords,
)
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

_PRIVATE = frozenset({FieldKind.PERSON, FieldKind.FILE})
"""Kinds of stored fields that a visitor does not see: they name people or open files."""


async def shared_records(
    work: UnitOfWork, keys: KeyRing, item: ItemRow, limit: int, cursor: str | None
) -> SharedRecords:
    """The records of the database or view behind an item, a page of them.

    Fields whose values come from elsewhere (relations and what is computed) are left out: they
    may come from databases that are not shared. Raises `NotFoundError`.
    """
    database_id = target_of(item)
    manifest: JsonObject = {}
    if item.kind == ItemKind.VIEW:
        view = await view_definition(work, item.workspace_id, target_of(item))
        database_id, manifest = view.database_id, view.manifest
    schema = await load_schema(work, item.workspace_id, database_id)
    fields = _open_fields(schema, manifest)
    query = {
        "filter": manifest.get("filter"),
        "sorts": manifest.get("sorts"),
        "fields": [spec.key for spec in fields],
        "limit": limit,
        "cursor": cursor,
    }
    body = RecordQuery.model_validate(query)
    result = await query_records(work, item.workspace_id, database_id, body, keys)
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

"""The JSON Schema of bundles: one object for the manifest, one for a row of each kind."""

from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    Integer,
    Uuid,
)
from sqlalchemy.dialects.postgresql import BYTEA, JSONB

from models.core.base import JsonObject
from models.core.bundles.kinds import BundleKind
from models.workspace.bundles.registry import KINDS
from models.workspace.bundles.rules import Manifest

_UUID = {"type": "string", "format": "uuid"}
MAX_TEXT = 1_000_000


def bundle_schema() -> JsonObject:
    """The published schema: `$defs` has `manifest` and one row of each kind."""
    manifest = Manifest.model_json_schema(ref_template="#/$defs/{model}")
    definitions = manifest.pop("$defs")
    rows = {kind.name: _with_type(kind) for kind in KINDS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Workspace bundle, version 1",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in ("manifest", *rows)],
        "$defs": {"manifest": manifest, **definitions, **rows},
    }


def row_schema(kind: BundleKind) -> JsonObject:
    """The schema of a row without its `type`; what it does not name is passed over."""
    properties = {}
    required = []
    for key, column in kind.columns.items():
        properties[key] = _value(kind, column)
        if _is_required(kind, column):
            required.append(key)
    return {"type": "object", "properties": properties, "required": required}


def _with_type(kind: BundleKind) -> JsonObject:
    schema = row_schema(kind)
    properties = {"type": {"const": kind.name}, **schema["properties"]}
    return {**schema, "properties": properties, "required": ["type", *schema["required"]]}


def _is_required(kind: BundleKind, column: Column[Any]) -> bool:
    free = column.nullable or column.server_default is not None
    return not free and column.name not in kind.imported_as


def _value(kind: BundleKind, column: Column[Any]) -> JsonObject:
    schema = dict(_type(kind, column))
    if choices := _choices(kind, column):
        schema["enum"] = [*choices, None] if column.nullable else choices
    if column.nullable and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    return schema


def _type(kind: BundleKind, column: Column[Any]) -> JsonObject:
    match column.type:
        case Uuid():
            return _UUID
        case JSONB():
            return {"type": "array" if column.name in kind.lists else "object"}
        case ARRAY() as array:
            item = _UUID if isinstance(array.item_type, Uuid) else {"type": "string"}
            return {"type": "array", "items": item, "maxItems": 10_000}
        case Boolean():
            return {"type": "boolean"}
        case BigInteger():
            return {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
        case Integer():
            return {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
        case Float():
            return {"type": "number"}
        case DateTime():
            return {"type": "string", "format": "date-time"}
        case BYTEA():
            return {"type": "string", "pattern": r"^\\x([0-9a-f]{2})*$"}
        case _:
            return {"type": "string", "maxLength": MAX_TEXT}


def _choices(kind: BundleKind, column: Column[Any]) -> list[str]:
    """The values that a constraint of the table allows."""
    for constraint in kind.table.constraints:
        if isinstance(constraint, CheckConstraint):
            text = str(constraint.sqltext)
            if text.startswith(f"{column.name} IN ("):
                listed = text.removeprefix(f"{column.name} IN (").removesuffix(")")
                return [value.strip().strip("'") for value in listed.split(",")]
    return []

"""Reading the lines of a file of rows, by the JSON Schema of bundles. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import jsonschema_rs
from pydantic_core import from_json
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
from models.core.bundles import BundleKind, Findings, Row
from models.workspace.bundles.registry import KIND_OF, KINDS
from models.workspace.bundles.rules import Manifest

_NUL = b"\\u0000"


def read_rows(
    lines: Sequence[bytes],
    kinds: Sequence[BundleKind],
    findings: Findings,
    *,
    checked: bool = False,
) -> Mapping[str, list[Row]]:
    """The rows of these kinds, by kind; rows of kinds that another step reads are passed over.

    Lines that cannot be taken are errors of `findings`, unknown kinds warnings. Lines that were
    `checked` before are not held against the schema again.
    """
    rows: dict[str, list[Row]] = {kind.name: [] for kind in kinds}
    for name, value in _objects(lines, findings):
        if name not in KIND_OF:
            findings.warn("unknown_kind", f"Rows of the unknown kind {name[:50]} are skipped.")
        elif name in rows:
            problem = None if checked else _problem(name, value)
            if problem is None:
                names = _names(name)
                rows[name].append({names[key]: one for key, one in value.items() if key in names})
            else:
                findings.refuse("schema", f"{name}: {problem}")
    return rows


def _objects(lines: Sequence[bytes], findings: Findings) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in lines:
        try:
            value = from_json(line, allow_inf_nan=False)
        except ValueError:
            findings.refuse("not_json", "A line is not a JSON object.")
            continue
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            findings.refuse("not_json", "A line is not a JSON object with a type.")
        elif _NUL in line:
            findings.refuse("not_text", "A line has an invalid character (NUL).")
        else:
            yield value.pop("type"), value


def _problem(kind: str, value: dict[str, Any]) -> str | None:
    """The first thing that the schema of a kind does not allow."""
    validator = _validator(kind)
    if validator.is_valid(value):
        check = KIND_OF[kind].check
        return None if check is None else check(value)
    # Only the place is named: its content belongs to the user.
    error = next(validator.iter_errors(value))
    path = ".".join(str(part) for part in error.instance_path)
    lacking = getattr(error.kind, "property", None)
    what = error.kind.name if lacking is None else f"{error.kind.name}: {lacking}"
    return f"{path or 'a row'} does not match the schema ({what})."


@cache
def _names(kind: str) -> Mapping[str, str]:
    """The name of a column by its name in a bundle."""
    return {key: str(column.name) for key, column in KIND_OF[kind].columns.items()}


@cache
def _validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(row_schema(KIND_OF[kind]), validate_formats=True)


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

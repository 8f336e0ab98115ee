"""The lines of a bundle: written of the rows of a workspace, a page at a time, and read again.

They are read by the JSON Schema of bundles.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs
import sqlalchemy as sa
from pydantic_core import from_json, to_json
from sqlalchemy.dialects.postgresql import BYTEA, JSONB

from models.core.base import Id, JsonObject
from models.core.bundles import BundleKind, Findings, Row
from models.data.fields.commands import DATABASES
from models.workspace.bundles.registry import KIND_OF, KINDS
from models.workspace.bundles.rules import Manifest
from runtime.database import UnitOfWork

Position = list[str | int]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a bundle, and the position of the last; None when no more follow."""

    lines: list[bytes]
    position: Position | None


async def read_lines(
    work: UnitOfWork,
    workspace_id: Id,
    kind: BundleKind,
    after: Sequence[str | int] | None,
    limit: int,
    database_id: Id | None = None,
) -> Lines:
    """The next rows of a kind, of one database when each has its own file.

    A page of rows that stay together has more than `limit` of them when one group does.
    """
    rows = kind.rows(workspace_id).subquery("rows")
    conditions = [] if database_id is None else [rows.c.database_id == database_id]
    if kind.group is not None:
        return await _read_whole(work, kind, rows, after, limit)
    order = [rows.c[name] for name in kind.order]
    if after is not None:
        typed = (
            sa.literal(_native(value, one), one.type)
            for value, one in zip(after, order, strict=True)
        )
        conditions.append(sa.tuple_(*order) > sa.tuple_(*typed))
    page = await work.rows(
        sa.select(_line(kind, rows).label("line"), *order)
        .where(*conditions)
        .order_by(*order)
        .limit(limit)
    )
    last = [_plain(page[-1]._mapping[name]) for name in kind.order] if page else None
    return Lines(_shown(kind, page), last if len(page) == limit else None)


async def next_database(work: UnitOfWork, workspace_id: Id, after: str | None) -> Id | None:
    """The first database of a workspace, or that behind another; None when no more follow."""
    rows = DATABASES.rows(workspace_id).subquery("rows")
    follows = [] if after is None else [rows.c.id > Id(after)]
    found: Id | None = await work.scalar(
        sa.select(rows.c.id).where(*follows).order_by(rows.c.id).limit(1)
    )
    return found


async def blobs_of(
    work: UnitOfWork, workspace_id: Id, kind: BundleKind, ids: Sequence[str]
) -> list[tuple[str, str]]:
    """SHA-256 and key of the objects that hold the bytes of these files."""
    table = kind.table.c
    wanted = sa.any_(sa.literal([Id(one) for one in ids], sa.ARRAY(sa.Uuid)))
    found = await work.rows(
        sa.select(table.sha256, table.object_key).where(
            table.workspace_id == workspace_id, table.id == wanted
        )
    )
    return [(row.sha256.hex(), row.object_key) for row in found]


async def _read_whole(
    work: UnitOfWork,
    kind: BundleKind,
    rows: sa.Subquery,
    after: Sequence[str | int] | None,
    limit: int,
) -> Lines:
    """Rows of whole groups, each behind its parent."""
    assert kind.group is not None
    assert kind.parent is not None
    group = rows.c[kind.group]
    follows = [] if after is None else [group > Id(str(after[0]))]
    upto = await work.scalar(
        sa.select(group).where(*follows).order_by(group).offset(limit - 1).limit(1)
    )
    if upto is not None:
        follows.append(group <= upto)
    page = await work.rows(
        sa.select(
            _line(kind, rows).label("line"),
            group.label("whole"),
            rows.c.id,
            rows.c[kind.parent].label("parent"),
        )
        .where(*follows)
        .order_by(group, rows.c.id)
    )
    return Lines(_shown(kind, _parents_first(page)), None if upto is None else [str(upto)])


def _shown(kind: BundleKind, found: Sequence[Any]) -> list[bytes]:
    lines = [row.line.encode() for row in found]
    return lines if kind.redact is None else [to_json(kind.redact(from_json(one))) for one in lines]


def _parents_first(found: Sequence[Any]) -> list[Any]:
    """The rows with each behind the one it names; rows that go in circles are left out."""
    below: dict[Any, list[Any]] = {}
    for row in found:
        below.setdefault((row.whole, row.parent), []).append(row)
    ordered = [row for (_, parent), rows in below.items() if parent is None for row in rows]
    for row in ordered:
        ordered.extend(below.get((row.whole, row.id), ()))
    return ordered


def _line(kind: BundleKind, rows: sa.Subquery) -> sa.ColumnElement[str]:
    pairs: list[Any] = [sa.literal("type", sa.Text), sa.literal(kind.name, sa.Text)]
    for key, one in kind.columns.items():
        pairs += [sa.literal(key, sa.Text), rows.c[one.name]]
    return sa.cast(sa.func.json_build_object(*pairs), sa.Text)


def _native(value: str | int, of: sa.ColumnElement[Any]) -> Id | str | int:
    return Id(str(value)) if isinstance(of.type, sa.Uuid) else value


def _plain(value: object) -> str | int:
    return value if isinstance(value, int) else str(value)


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


def _is_required(kind: BundleKind, column: sa.Column[Any]) -> bool:
    free = column.nullable or column.server_default is not None
    return not free and column.name not in kind.imported_as


def _value(kind: BundleKind, column: sa.Column[Any]) -> JsonObject:
    schema = dict(_type(kind, column))
    if choices := _choices(kind, column):
        schema["enum"] = [*choices, None] if column.nullable else choices
    if column.nullable and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    return schema


def _type(kind: BundleKind, column: sa.Column[Any]) -> JsonObject:
    match column.type:
        case sa.Uuid():
            return _UUID
        case JSONB():
            return {"type": "array" if column.name in kind.lists else "object"}
        case sa.ARRAY() as array:
            item = _UUID if isinstance(array.item_type, sa.Uuid) else {"type": "string"}
            return {"type": "array", "items": item, "maxItems": 10_000}
        case sa.Boolean():
            return {"type": "boolean"}
        case sa.BigInteger():
            return {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
        case sa.Integer():
            return {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
        case sa.Float():
            return {"type": "number"}
        case sa.DateTime():
            return {"type": "string", "format": "date-time"}
        case BYTEA():
            return {"type": "string", "pattern": r"^\\x([0-9a-f]{2})*$"}
        case _:
            return {"type": "string", "maxLength": MAX_TEXT}


def _choices(kind: BundleKind, column: sa.Column[Any]) -> list[str]:
    """The values that a constraint of the table allows."""
    for constraint in kind.table.constraints:
        if isinstance(constraint, sa.CheckConstraint):
            text = str(constraint.sqltext)
            if text.startswith(f"{column.name} IN ("):
                listed = text.removeprefix(f"{column.name} IN (").removesuffix(")")
                return [value.strip().strip("'") for value in listed.split(",")]
    return []

"""Databases and their fields in a bundle."""

import re
from typing import Any

import sqlalchemy as sa

from models.core.base import Id, deferred_adapter
from models.core.bundles import BundleKind, Row, Stage, shape_problem
from models.data.fields.rows import DATABASE, live_databases
from models.data.fields.rules.fields import FieldKind, Option
from models.data.fields.rules.settings import read_settings
from models.data.fields.tables import database, field

KEY = re.compile(r"[a-z][a-z0-9_]{0,62}")
_FILE = "databases.ndjson"
_OPTIONS = deferred_adapter(list[Option])


def of_live_databases(workspace_id: Id, table: sa.FromClause) -> sa.Select[Any]:
    """The rows of a table that belong to databases outside the trash."""
    return sa.select(table).where(
        table.c.workspace_id == workspace_id,
        table.c.database_id.in_(live_databases(workspace_id, DATABASE.id)),
    )


def _databases(workspace_id: Id) -> sa.Select[Any]:
    return live_databases(workspace_id, *DATABASE)


def _fields(workspace_id: Id) -> sa.Select[Any]:
    return of_live_databases(workspace_id, field)


def _field_problem(row: Row) -> str | None:
    """The problem of a field as a bundle has it."""
    if row["kind"] not in set(FieldKind):
        return f"unknown kind of field: {row['kind'][:50]}"
    if not KEY.fullmatch(row["key"]):
        return "the key of a field is not valid"
    problem = shape_problem(_OPTIONS, row["options"], "options")
    if problem is not None:
        return problem
    kind, keys = FieldKind(row["kind"]), {option["key"] for option in row["options"]}
    problems = read_settings(kind, row["settings"], keys, "settings").problems
    if problems:
        return f"{problems[0].path}: {problems[0].message}"
    if kind is FieldKind.RELATION and not row["settings"].get("inverseFieldId"):
        return "settings.inverseFieldId: a relation has an inverse field"
    return None


DATABASES = BundleKind(
    name="database",
    stage=Stage.SCHEMA,
    file=_FILE,
    table=database,
    rows=_databases,
    references={"item_id": "item"},
    required=("item_id",),
    contents=("settings", "record_layout"),
    unique_key=True,
)

FIELDS = BundleKind(
    name="field",
    stage=Stage.SCHEMA,
    file=_FILE,
    table=field,
    rows=_fields,
    references={"database_id": "database"},
    contents=("settings", "default_value"),
    lists=("options",),
    left_out={
        "index_id": "a side index is built where queries ask for it",
        "index_ready": "as index_id",
    },
    check=_field_problem,
)

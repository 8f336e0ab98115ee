"""Reading the fields of databases as the rules see them: as rows, or as one text."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Protocol, cast

from sqlalchemy import ARRAY, ScalarSelect, Text, Uuid, bindparam, func, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import aggregate_order_by

from models.content.items.joins import live_item_of
from models.core.base import Id
from models.data.fields.rules.fields import FieldSpec, FieldSpecs, Option
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.tables import database, field
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement


def fields_as_text() -> ScalarSelect[Any]:
    """The fields of the enclosing statement's `database`, as JSON text that `read_fields` reads.

    For statements that read a row together with the fields of its database.
    """
    described = func.json_build_object(*(part for name in _SPEC for part in (name, field.c[name])))
    ordered = aggregate_order_by(described, field.c.position, field.c.key)
    return (
        select(sql_cast(func.json_agg(ordered), Text))
        .where(
            field.c.workspace_id == database.c.workspace_id, field.c.database_id == database.c.id
        )
        .correlate(database)
        .scalar_subquery()
    )


def read_fields(text: str) -> FieldSpecs:
    """The fields that `fields_as_text` gave, as the rules see them."""
    return dict(_fields_of_text(text))


@lru_cache(maxsize=512)
def _fields_of_text(text: str) -> FieldSpecs:
    """Parsed once until the fields change: the text itself is the cache key."""
    rows = (
        SimpleNamespace(
            **{**row, "id": Id(row["id"]), "index_id": row["index_id"] and Id(row["index_id"])}
        )
        for row in json.loads(text)
    )
    return field_specs(cast("Iterator[FieldRow]", rows))


_SPEC = (
    "id",
    "key",
    "label",
    "kind",
    "required",
    "default_value",
    "options",
    "settings",
    "position",
    "index_id",
    "index_ready",
)


class FieldRow(Protocol):
    """The columns of a field that the rules see."""

    id: Id
    key: str
    label: str
    kind: str
    required: bool
    default_value: str | None
    options: list[dict[str, Any]]
    settings: dict[str, Any]
    position: float
    index_id: Id | None
    index_ready: bool


def field_specs(rows: Iterable[FieldRow]) -> FieldSpecs:
    """Rows of the field table as the rules see them."""
    return {row.key: field_spec(row) for row in rows}


def specs_of_rows(rows: Iterable[Mapping[str, Any]]) -> FieldSpecs:
    """Rows of the field table with ids as text, as a bundle has them; no side index is known."""
    known = {"index_id": None, "index_ready": False}
    free = {"default_value": None}
    described = (SimpleNamespace(**{**free, **row, **known, "id": Id(row["id"])}) for row in rows)
    return field_specs(cast("Iterator[FieldRow]", described))


def field_spec(row: FieldRow) -> FieldSpec:
    """One row of the field table as the rules see it."""
    return FieldSpec(
        id=row.id,
        key=row.key,
        label=row.label,
        kind=FieldKind(row.kind),
        required=row.required,
        default=row.default_value,
        options=tuple(Option(**option) for option in row.options),
        settings=row.settings,
        position=row.position,
        index_id=row.index_id,
        index_ready=row.index_ready,
    )


_FIELDS = PreparedStatement(
    select(fields_as_text()).where(
        database.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        database.c.id == bindparam("database_id", type_=Uuid),
    )
)


async def find_fields(work: UnitOfWork, workspace_id: Id, database_id: Id) -> FieldSpecs:
    """The fields of a database, in the trash or not; none when there is no such database."""
    named = {"workspace_id": workspace_id, "database_id": database_id}
    row = await _FIELDS.first(work, named)
    return {} if row is None else read_fields(row[0])


async def fields_of_each(
    work: UnitOfWork, workspace_id: Id, database_ids: Collection[Id]
) -> dict[Id, FieldSpecs]:
    """The fields of each of these databases, in the trash or not."""
    rows = await _OF_EACH.rows(work, {"workspace_id": workspace_id, "ids": list(database_ids)})
    by_database = defaultdict(list)
    for row in rows:
        by_database[row.database_id].append(row)
    return {each: field_specs(by_database[each]) for each in database_ids}


_OF_EACH = PreparedStatement(
    select(field).where(
        field.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        field.c.database_id == func.any(bindparam("ids", type_=ARRAY(Uuid))),
    )
)


async def fields_by_database(
    work: UnitOfWork, workspace_id: Id, database_ids: Collection[Id]
) -> dict[Id, FieldSpecs]:
    """The fields of each of these databases that exists outside the trash."""
    rows = await work.rows(
        select(database.c.id, fields_as_text().label("fields"))
        .join(*live_item_of(database))
        .where(
            database.c.workspace_id == workspace_id,
            database.c.id.in_(sorted(database_ids)),
        )
    )
    return {row.id: read_fields(row.fields) for row in rows}


async def field_kind(
    work: UnitOfWork, workspace_id: Id, database_id: Id, field_key: str
) -> FieldKind | None:
    """The kind of a field; None when there is no such field."""
    kind = await work.scalar(
        select(field.c.kind).where(
            field.c.workspace_id == workspace_id,
            field.c.database_id == database_id,
            field.c.key == field_key,
        )
    )
    return None if kind is None else FieldKind(kind)

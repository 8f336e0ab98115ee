"""The database that a run fills, there already or created with its rows, and its known columns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.problems import MOST_SHOWN, nearest_first, shown_name
from models.data.databases.field_changes import create_field
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.fields.commands import await_schema, lock_fields, store_options
from models.data.fields.queries import load_schema, require_edit
from models.data.fields.rules.fields import TITLE_KEY, FieldSpec, FieldSpecs, Option, Schema
from models.data.fields.rules.options import new_options
from models.data.fields.shapes import CreateField
from models.sources.data_source_runs.rules import KnownColumn, KnownColumns
from models.sources.data_source_runs.tables import (
    SourceColumns,
    SourceRunRow,
    source_columns,
    source_id_of,
)
from models.sources.data_sources.rules import FieldMapping
from models.sources.tabular.rules.options import ErrorKind, SourceProblem
from runtime.database import UnitOfWork
from runtime.ids import new_id

DENIED = "You need edit access to the target database."

Grown = Mapping[str, Sequence[JsonObject]]
"""Field key → the options that rows need and the field lacked, as they are stored."""


async def filled_fields(
    work: UnitOfWork,
    run: SourceRunRow,
    mapping: Sequence[FieldMapping],
    columns: Mapping[str, str] | None,
) -> list[FieldSpec]:
    """The fields of the mapping, in its order; `columns` fill the fields of these keys.

    Without rows there are none. Raises SourceProblem for a field the target does not have, or has
    and cannot be filled, and for a key that no column fills.
    """
    for key in run.plan["keyFields"]:
        if columns is not None and key not in columns:
            near = nearest_first(key, columns, columns)[:MOST_SHOWN]
            filled = ", ".join(f"{name} ({shown_name(columns[name])})" for name in near)
            raise SourceProblem(
                ErrorKind.MAPPING,
                f"No column fills the key field {shown_name(key)}. Columns fill: {filled}.",
            )
    known = await known_fields(work, run)
    return fields_of(mapping, known, suggested=not run.plan["fields"])


async def known_fields(work: UnitOfWork, run: SourceRunRow) -> FieldSpecs | None:
    """The fields of the database that a run fills; None for one that it creates."""
    if run.database_id is None:
        return None
    return (await load_schema(work, run.workspace_id, run.database_id)).fields


def fields_of(
    mapping: Sequence[FieldMapping], database_fields: FieldSpecs | None, *, suggested: bool
) -> list[FieldSpec]:
    """The fields that columns fill: `database_fields`, or fields of a new database without them.

    Fields that columns suggest are brought along where they are lacking. Raises SourceProblem.
    """
    if database_fields is None:
        return [_planned(entry) for entry in mapping]
    fields = database_fields
    if suggested:
        fields = {**{entry.field_key: _planned(entry) for entry in mapping}, **database_fields}
    for entry in mapping:
        if entry.field_key not in fields or not fields[entry.field_key].stored:
            names = ", ".join(key for key, spec in fields.items() if spec.stored)
            raise SourceProblem(
                ErrorKind.MAPPING,
                f"The database has no field {entry.field_key} that a column can fill."
                f" It has: {names}.",
            )
    return [fields[entry.field_key] for entry in mapping]


def _planned(mapping: FieldMapping) -> FieldSpec:
    """A field of the database that the run will create; its options may follow from the rows."""
    settings = mapping.settings or {}
    return FieldSpec(
        id=new_id(),
        key=mapping.field_key,
        label=mapping.label,
        kind=mapping.kind,
        required=mapping.required,
        options=new_options(mapping.options or (), new_id, "options", []),
        settings={**settings, "allowCreate": True} if mapping.grows else settings,
    )


async def open_target(
    work: UnitOfWork,
    actor: Actor,
    run: SourceRunRow,
    mapping: Sequence[FieldMapping],
    new_options: Grown,
) -> Schema:
    """The database as rows are written into it, its fields kept as they are until the end.

    Raises `NotFoundError` and `DeniedError` for who may not fill it any more, SourceProblem when
    its options were changed while rows were read.
    """
    database_id = run.database_id
    if database_id is None:
        database_id = await _create(work, actor, run, mapping, new_options)
    else:
        await require_edit(work, actor, database_id, DENIED)
        await _add_missing(work, actor, run, database_id, mapping, new_options)
    await await_schema(work, database_id)
    schema = await load_schema(work, run.workspace_id, database_id)
    if run.database_id is not None and new_options:
        schema = await _with_options(work, schema, new_options)
    return schema


async def _add_missing(
    work: UnitOfWork,
    actor: Actor,
    run: SourceRunRow,
    database_id: Id,
    mapping: Sequence[FieldMapping],
    grown: Grown,
) -> None:
    """Add the fields that columns suggest and the database lacks."""
    known = (await load_schema(work, run.workspace_id, database_id)).fields
    for one in mapping:
        if one.field_key not in known:
            body = one.filled_field(grown.get(one.field_key, ()))
            await create_field(work, actor, database_id, CreateField.model_validate(body))


async def _create(
    work: UnitOfWork,
    actor: Actor,
    run: SourceRunRow,
    mapping: Sequence[FieldMapping],
    grown: Grown,
) -> Id:
    ordered = sorted(mapping, key=lambda one: one.field_key != TITLE_KEY)
    wanted = {
        "label": run.plan["label"],
        "parentItemId": run.plan.get("parentItemId"),
        "fields": [one.filled_field(grown.get(one.field_key, ())) for one in ordered],
    }
    return (await create_database(work, actor, CreateDatabase.model_validate(wanted))).id


async def _with_options(work: UnitOfWork, schema: Schema, grown: Grown) -> Schema:
    """The schema with the options that rows need, written unless someone else has done so."""
    locked = await lock_fields(work, schema, list(grown))
    specs: dict[str, FieldSpec] = {}
    for key, options in grown.items():
        spec = locked.fields[key]
        missing = [_option(each) for each in options if each["key"] not in spec.option_keys]
        for each in options:
            if spec.option_names.get(each["key"], each["name"]) != each["name"]:
                raise SourceProblem(
                    ErrorKind.MAPPING,
                    f"The options of {spec.label} changed while rows were read. Try again.",
                )
        specs[key] = replace(spec, options=(*spec.options, *missing))
    whole = replace(locked, fields={**locked.fields, **specs})
    await store_options(work, whole, list(specs))
    return whole


def _option(stored: Mapping[str, Any]) -> Option:
    return Option(**stored)


def is_read_again(run: SourceRunRow) -> bool:
    """True when later runs read the same source: a data source, or what an import renews."""
    return run.data_source_id is not None or "sourceId" in run.plan


async def known_columns(work: UnitOfWork, run: SourceRunRow) -> KnownColumns:
    """The known columns, of fields that are still there."""
    row = await _find(work, run)
    if row is None:
        return KnownColumns()
    fields = (await load_schema(work, run.workspace_id, row.database_id)).fields
    columns = [
        one
        for one in _columns(row)
        if one.field_key in fields and str(fields[one.field_key].id) == one.field_id
    ]
    return KnownColumns(columns, row.headers, row.config, row.json_path)


async def fills_new_field(
    work: UnitOfWork, run: SourceRunRow, schema: Schema, keys: Sequence[str]
) -> bool:
    """True when a field that the source filled was removed, and one of its key is filled now."""
    row = await _find(work, run)
    return row is not None and any(
        one.field_key in keys and str(schema.fields[one.field_key].id) != one.field_id
        for one in _columns(row)
    )


async def remember_columns(work: UnitOfWork, run: SourceRunRow, schema: Schema) -> None:
    """Remember what a run has read; rows that are not there say nothing of columns."""
    read = run.progress.get("remembered")
    if read is None or not is_read_again(run):
        return
    columns = [
        {**one, "field_id": str(schema.fields[one["field_key"]].id)}
        for one in read["columns"]
        if one["field_key"] in schema.fields
    ]
    values = {**read, "columns": columns, "database_id": schema.database_id}
    row = {"workspace_id": run.workspace_id, "source_id": source_id_of(run), **values}
    await work.execute(
        insert(source_columns)
        .values(row)
        .on_conflict_do_update(index_elements=["workspace_id", "source_id"], set_=values)
    )


async def _find(work: UnitOfWork, run: SourceRunRow) -> SourceColumns | None:
    if not is_read_again(run) or run.database_id is None:
        return None
    return await work.first(
        sa.select(source_columns).where(
            source_columns.c.workspace_id == run.workspace_id,
            source_columns.c.source_id == source_id_of(run),
            source_columns.c.database_id == run.database_id,
        ),
        of=SourceColumns,
    )


def _columns(row: SourceColumns) -> Sequence[KnownColumn]:
    return [KnownColumn(**one) for one in row.columns]

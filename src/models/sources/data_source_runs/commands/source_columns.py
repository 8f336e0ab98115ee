"""The known columns of a source, from one run to the next (ADR 0125)."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import Schema
from models.sources.data_source_runs.rows import SourceColumnsRow, SourceRunRow, source_id_of
from models.sources.data_source_runs.rules import KnownColumn, KnownColumns
from models.sources.data_source_runs.tables import source_columns
from runtime.database import UnitOfWork


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


async def _find(work: UnitOfWork, run: SourceRunRow) -> SourceColumnsRow | None:
    if not is_read_again(run) or run.database_id is None:
        return None
    return await work.first(
        select(source_columns).where(
            source_columns.c.workspace_id == run.workspace_id,
            source_columns.c.source_id == source_id_of(run),
            source_columns.c.database_id == run.database_id,
        ),
        of=SourceColumnsRow,
    )


def _columns(row: SourceColumnsRow) -> Sequence[KnownColumn]:
    return [KnownColumn(**one) for one in row.columns]

"""Records, their relations and their contents in a bundle."""

import asyncio
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.content.surfaces.commands import surface_kinds
from models.core.base import Id
from models.core.bundles import USER, BundleKind, Findings, ImportTarget, Row, Stage
from models.data.fields.commands import of_live_databases
from models.data.fields.rows import DATABASE, find_fields, live_databases, specs_of_rows
from models.data.fields.rules.fields import DERIVED_KINDS, TITLE_KEY, FieldKind, FieldSpecs
from models.data.fields.tables import field, removed_field
from models.data.records.computed_values import request_recomputation
from models.data.records.rules.computed_order import Stale
from models.data.records.rules.values import DataCheck
from models.data.records.tables import record, record_link
from runtime.database import UnitOfWork


def _rows(workspace_id: Id) -> sa.Select[Any]:
    """Records outside the trash, without what is left under the keys of removed fields."""
    removed_keys = (
        sa.select(sa.func.array_agg(removed_field.c.key))
        .where(
            removed_field.c.workspace_id == record.c.workspace_id,
            removed_field.c.database_id == record.c.database_id,
        )
        .correlate(record)
        .scalar_subquery()
    )
    none = sa.cast(sa.literal([], sa.ARRAY(sa.Text)), sa.ARRAY(sa.Text))
    data = record.c.data.op("-", return_type=JSONB())(sa.func.coalesce(removed_keys, none)).label(
        "data"
    )
    columns = [data if one.name == "data" else one for one in record.c]
    return sa.select(*columns).where(
        record.c.workspace_id == workspace_id,
        record.c.database_id.in_(live_databases(workspace_id, DATABASE.id)),
        record.c.deleted_at.is_(None),
    )


def live_records(workspace_id: Id) -> sa.Select[Any]:
    """The ids of the records outside the trash."""
    live = of_live_databases(workspace_id, record).where(record.c.deleted_at.is_(None))
    return live.with_only_columns(record.c.id)


def _links(workspace_id: Id) -> sa.Select[Any]:
    """Links between records outside the trash."""
    ids = live_records(workspace_id)
    return sa.select(record_link).where(
        record_link.c.workspace_id == workspace_id,
        record_link.c.record_id.in_(ids),
        record_link.c.target_id.in_(ids),
    )


def _live_content(surface: sa.FromClause) -> sa.ColumnElement[bool]:
    """True when a surface is the content of a record or of a template outside the trash."""
    databases = live_databases(surface.c.workspace_id, DATABASE.id).where(
        DATABASE.id == surface.c.database_id
    )
    live = sa.select(record.c.id).where(
        record.c.workspace_id == surface.c.workspace_id,
        record.c.id == surface.c.record_id,
        record.c.deleted_at.is_(None),
    )
    return sa.and_(
        surface.c.database_id.in_(databases),
        sa.or_(surface.c.record_id.is_(None), live.correlate_except(record).exists()),
    )


def _checked(fields: FieldSpecs, check: DataCheck, row: Row) -> tuple[Row, list[str]]:
    """A record with the values that its fields take, and where one is left out."""
    change, problems = check.patch({**row["data"], TITLE_KEY: row["title"]})
    timers = {
        key: {"totalMs": value["totalMs"], "runningEntryId": None}
        for key, value in (row.get("computed") or {}).items()
        if key in fields and fields[key].kind is FieldKind.TIMER and _is_total(value)
    }
    made = {**row, "title": change.title or "", "data": change.data, "computed": timers}
    return made, [problem.path.removeprefix("data.") for problem in problems]


def _is_total(value: object) -> bool:
    total = value.get("totalMs") if isinstance(value, dict) else None
    return isinstance(total, int) and not isinstance(total, bool) and 0 <= total < 2**53


def _judge(rows: Sequence[Row], beside: Sequence[Row], findings: Findings) -> None:
    """Tell which values no field takes."""
    checks: dict[str, tuple[FieldSpecs, DataCheck]] = {}
    for row in rows:
        own = row["database_id"]
        if own not in checks:
            fields = specs_of_rows(one for one in beside if one["database_id"] == own)
            checks[own] = (fields, DataCheck(fields))
        for key in _checked(*checks[own], row)[1]:
            findings.warn("value", f"record: values of {key} do not fit their field.")


async def _prepare(work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]) -> Sequence[Row]:
    checks: dict[str, tuple[FieldSpecs, DataCheck]] = {}
    for own in {row["database_id"] for row in rows}:
        fields = await find_fields(work, target.workspace_id, Id(own))
        checks[own] = (fields, DataCheck(fields))
    return await asyncio.to_thread(
        lambda: [_checked(*checks[row["database_id"]], row)[0] for row in rows]
    )


async def _conclude(work: UnitOfWork, target: ImportTarget) -> None:
    """Have formulas, rollups and lookups computed."""
    rows = await work.rows(
        sa.select(field.c.database_id, sa.func.array_agg(field.c.key).label("keys"))
        .where(
            field.c.workspace_id == target.workspace_id,
            field.c.kind.in_([kind.value for kind in DERIVED_KINDS]),
        )
        .group_by(field.c.database_id)
    )
    for row in rows:
        stale = Stale(row.database_id, (), row.keys)
        await request_recomputation(work, target.workspace_id, stale, user_id=target.user_id)


RECORDS = BundleKind(
    name="record",
    stage=Stage.RECORDS,
    file="records/{database_id}.ndjson",
    table=record,
    rows=_rows,
    references={
        "database_id": "database",
        "content_surface_id": "surface",
        "created_by_user_id": USER,
        "updated_by_user_id": USER,
    },
    contents=("data",),
    left_out={
        "deleted_at": "what is in the trash stays behind",
        "creation_principal_type": "a record that comes with a bundle has no history",
        "creation_run_id": "as creation_principal_type",
        "creation_node_id": "as creation_principal_type",
    },
    prepare=_prepare,
    copied=True,
    judge=_judge,
    beside="field",
    conclude=_conclude,
)

LINKS = BundleKind(
    name="record_link",
    stage=Stage.RELATIONS,
    file="relations.ndjson",
    table=record_link,
    rows=_links,
    references={"record_id": "record", "field_id": "field", "target_id": "record"},
    order=("record_id", "field_id", "target_id"),
)

SURFACES, BLOCKS, SURFACE_COMMENTS = surface_kinds(_live_content)

"""Reading runs and what they left out; every query names the workspace.

See architecture.md#workspace-in-every-query.
"""

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import sqlalchemy as sa

from models.core.access.rules import MANAGERS, Actor
from models.core.base import Id, JsonObject
from models.core.lifecycle.lost_workers import with_worker_wait
from models.core.page_addresses import source_run_page
from models.core.pagination import Page, PageRequest
from models.core.repository import first_rows_of_each
from models.data.record_exports.rules import csv_cell
from models.messages.jobs.store import succeeded_job
from models.sources.data_source_runs import shapes
from models.sources.data_source_runs.rules import OPEN_RUN, Stage, missing_rows
from models.sources.data_source_runs.tables import (
    RunRejection,
    SourceRunRow,
    data_source_run,
    run_rejection,
)
from models.sources.tabular.rules.options import ErrorKind
from runtime import errors
from runtime.database import UnitOfWork, columns_of
from runtime.temporal.workflow_kinds import WorkflowKind

_NAMED = 10
"""Columns that a sentence names."""
_NEWEST_FIRST = (data_source_run.c.created_at.desc(), data_source_run.c.id.desc())
"""Ids have no order: the id of a run that a step or a schedule asks for follows from it."""
_SHOWN: sa.Select[Any] = sa.select(*(one for one in data_source_run.c if one.name != "plan"))
"""Without the plan, which may hold a whole file."""


async def list_runs(
    work: UnitOfWork, workspace_id: Id, data_source_id: Id, page: PageRequest
) -> Page[shapes.DataSourceRunDetail]:
    """The runs of a data source, newest first."""
    runs, columns = _runs(workspace_id, data_source_id), data_source_run.c
    shown = await page.descending(work, runs, columns.created_at, columns.id, of=SourceRunRow)
    return Page([_detail(row) for row in shown.items], shown.cursor)


async def get_run(
    work: UnitOfWork, workspace_id: Id, data_source_id: Id, run_id: Id
) -> shapes.DataSourceRunDetail:
    """A run of a data source. Raises `NotFoundError`."""
    statement = _runs(workspace_id, data_source_id).where(data_source_run.c.id == run_id)
    found = await work.one(statement, "run", of=SourceRunRow)
    return await with_worker_wait(work, _detail(found), is_open=found.status in OPEN_RUN)


async def run_in_workspace(work: UnitOfWork, workspace_id: Id, run_id: Id) -> SourceRunRow:
    """The row of a run. Raises `NotFoundError`."""
    return await work.one(
        sa.select(data_source_run).where(
            data_source_run.c.workspace_id == workspace_id, data_source_run.c.id == run_id
        ),
        "run",
        of=SourceRunRow,
    )


async def latest_runs(
    work: UnitOfWork, workspace_id: Id, data_source_ids: Collection[Id]
) -> dict[Id, shapes.DataSourceRunDetail]:
    """The newest run of each of these data sources that has one."""

    def newest(source: sa.ColumnElement[Id]) -> sa.Select[Any]:
        own = _SHOWN.where(
            data_source_run.c.workspace_id == workspace_id,
            data_source_run.c.data_source_id == source,
        )
        return own.order_by(*_NEWEST_FIRST).limit(1)

    rows = await work.rows(first_rows_of_each(data_source_ids, newest), of=SourceRunRow)
    shown = [_detail(row) for row in rows]
    return {run.data_source_id: run for run in shown}


def _runs(workspace_id: Id, data_source_id: Id) -> sa.Select[Any]:
    return _SHOWN.where(
        data_source_run.c.workspace_id == workspace_id,
        data_source_run.c.data_source_id == data_source_id,
    )


def _detail(row: SourceRunRow) -> shapes.DataSourceRunDetail:
    return shapes.DataSourceRunDetail.model_validate({**columns_of(row), **shown_of(row)})


def shown_of(row: SourceRunRow) -> JsonObject:
    """The values shown otherwise than they are stored; an open run counts what it reads."""
    progress = row.progress
    size = progress.get("bytes", 0)
    if progress.get("stage") == Stage.FETCH:
        # Also what is here of a page that is not whole yet.
        size = max(size, progress.get("received", 0))
    read = {"rows": progress.get("read", 0), "bytes": size}
    counted = {"rowsFetched": read["rows"], "bytesFetched": read["bytes"]}
    counted["cellsSkipped"] = progress.get("lost", 0)
    return {
        "progress": {"stage": progress["stage"], **read} if "stage" in progress else None,
        "stats": row.stats or counted,
        "columns": columns_of_run(progress),
        "reversal": None if row.result is None else row.result.get("reversal"),
        "page_url": source_run_page(row.id),
    }


def columns_of_run(progress: JsonObject) -> JsonObject:
    """The columns of a run that people see."""
    paths = {one["fieldKey"]: one["sourcePath"] for one in progress.get("mapping", ())}
    skipped = [
        {"sourcePath": paths.get(key, key), "fieldKey": key, "cells": cells}
        for key, cells in progress.get("lostIn", {}).items()
    ]
    missing = max(progress.get("stated", 0) - progress.get("read", 0), 0)
    return {**progress.get("columns", {}), "skippedCells": skipped, "rowsMissing": missing}


def remarks(columns: shapes.RunColumns) -> list[str]:
    """The columns and missing rows of a run that people should know of, in sentences."""
    preserved = [column.source_path for column in columns.missing if column.values_kept]
    emptied = [column.source_path for column in columns.missing if not column.values_kept]
    other_kinds = [
        f"{column.source_path} ({column.before} to {column.kind})"
        for column in columns.changed_columns
    ]
    skipped = [f"{column.source_path} ({column.cells:,})" for column in columns.skipped_cells]
    new = [column.source_path for column in columns.new_columns]
    sentences = (
        ("Unreadable values, left blank", skipped),
        ("Columns missing from the source, fields keep their values", preserved),
        ("Columns missing from all rows, fields are blank", emptied),
        ("Columns of a different kind", other_kinds),
        ("New columns", new),
    )
    told = [f"{subject}: {_listed(names)}." for subject, names in sentences if names]
    if columns.rows_missing:
        told.insert(0, missing_rows(columns.rows_missing))
    return told


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


async def get_import(
    work: UnitOfWork, actor: Actor, import_id: Id
) -> shapes.SpreadsheetImportDetail:
    """An import: the actor's own, or anyone's for managers. Raises `NotFoundError`."""
    statement = _SHOWN.where(
        data_source_run.c.workspace_id == actor.workspace_id,
        data_source_run.c.id == import_id,
        data_source_run.c.data_source_id.is_(None),
    )
    row = await work.first(statement, of=SourceRunRow)
    if row is None or (row.actor_user_id != actor.user_id and actor.role not in MANAGERS):
        raise errors.NotFoundError("import")
    shown = {**columns_of(row), **shown_of(row), "result": None}
    detail = shapes.SpreadsheetImportDetail.model_validate(shown)
    if row.result is not None:
        detail.result = _result(row, row.result)
    return await with_worker_wait(work, detail, is_open=row.status in OPEN_RUN)


async def other_sheets(work: UnitOfWork, workspace_id: Id, run_id: Id) -> list[str]:
    """The sheets of a workbook beside the one that a run has brought in."""
    progress: JsonObject | None = await work.scalar(
        sa.select(data_source_run.c.progress).where(
            data_source_run.c.workspace_id == workspace_id, data_source_run.c.id == run_id
        )
    )
    found = progress or {}
    return [name for name in found.get("sheets", []) if name != found.get("sheetName")]


def _result(run: SourceRunRow, result: JsonObject) -> shapes.SpreadsheetImportResult:
    stats = run.stats
    names = ("rowsInserted", "rowsUpdated", "rowsUnchanged")
    return shapes.SpreadsheetImportResult(
        database_id=result["databaseId"],
        item_id=result["itemId"],
        label=result["label"],
        sheet_name_used=run.progress.get("sheetName"),
        field_count=len(run.progress["mapping"]),
        record_count=sum(stats[name] for name in names),
        skipped_row_count=stats["rowsSkipped"],
        skipped_cells=result["lost"],
        import_id=run.id,
    )


_CLASSES: Mapping[ErrorKind, type[errors.PlatformError]] = {
    ErrorKind.CANCELLED: errors.ConflictError,
    ErrorKind.INTERNAL: errors.UpstreamError,
    ErrorKind.WRITE: errors.DeniedError,
}
"""The errors that answer a failed import; what is wrong with its input is a validation error."""


async def import_outcome(
    work: UnitOfWork, actor: Actor, import_id: Id, *, last: bool
) -> shapes.SpreadsheetImportResult | None:
    """The result of an import; None while it is running.

    Raises `InProgressError` when this is the last time to ask, and the error that answers its
    failure.
    """
    found = await get_import(work, actor, import_id)
    if found.result is not None:
        return found.result
    if found.status not in OPEN_RUN:
        raise _CLASSES.get(found.error_kind or ErrorKind.INTERNAL, errors.ValidationError)(
            found.error or "The import was cancelled."
        )
    if last:
        raise errors.InProgressError("The import is still running. Try again for its result.")
    return None


async def reversal_ended(
    work: UnitOfWork, actor: Actor, run_id: Id, job_id: Id, *, last: bool
) -> bool:
    """True when a run has been reverted.

    Raises `ConflictError` when it could not be, `InProgressError` when this is the last time to
    ask.
    """
    if (await run_in_workspace(work, actor.workspace_id, run_id)).reverted_at is not None:
        return True
    await succeeded_job(
        work,
        actor.workspace_id,
        WorkflowKind.DATA_SOURCE_REVERSAL,
        job_id,
        failed="The run could not be reverted.",
        in_progress="The run is still being reverted." if last else None,
    )
    return False


async def open_runs(work: UnitOfWork, run_ids: Sequence[Id | None]) -> Sequence[Id]:
    """The given runs that are still open."""
    rows = await work.rows(
        sa.select(data_source_run.c.id).where(
            data_source_run.c.id.in_([one for one in run_ids if one is not None]),
            data_source_run.c.status.in_([status.value for status in OPEN_RUN]),
        )
    )
    return [row.id for row in rows]


_HEADERS = ("Row", "Column", "Field", "Value", "Reason")


async def list_rejects(
    work: UnitOfWork, workspace_id: Id, run_id: Id, page: PageRequest
) -> shapes.RejectList:
    """A page of what a run left out, which the caller may see. Raises `NotFoundError`."""
    run = await run_in_workspace(work, workspace_id, run_id)
    rows = _rejections(workspace_id, run_id)
    rejections = await page.ascending(work, rows, run_rejection.c.place, of=RunRejection)
    kept = await work.scalar(sa.select(sa.func.count()).select_from(rows.subquery()))
    return shapes.RejectList(
        rejects=[_reject(row) for row in rejections.items],
        skipped_cells=(run.result or run.progress).get("lost", 0),
        skipped_row_count=run.stats.get("rowsSkipped", 0),
        kept=kept,
        cursor=rejections.cursor,
    )


_EXAMPLES = 10
"""Rejects of a column that a page shows; the file has the others."""


@dataclass(frozen=True, slots=True)
class ColumnRejects:
    """The first rejects of a column, of `count` that are kept; without a column, skipped rows."""

    column: str | None
    count: int
    examples: Sequence[shapes.Reject]


async def rejects_by_column(
    work: UnitOfWork, workspace_id: Id, run_id: Id
) -> Sequence[ColumnRejects]:
    """The rejections that are kept of a run, by column; the columns with most of them first."""
    column, place = run_rejection.c.column, run_rejection.c.place
    rank = sa.func.row_number().over(partition_by=column, order_by=place)
    number = sa.func.count().over(partition_by=column)
    ranked = (
        _rejections(workspace_id, run_id)
        .add_columns(rank.label("rank"), number.label("number"))
        .subquery()
    )
    shown = (
        sa.select(ranked)
        .where(ranked.c.rank <= _EXAMPLES)
        .order_by(ranked.c.number.desc(), ranked.c.column, ranked.c.place)
    )
    found = await work.rows(shown, of=_Ranked)
    groups = [list(group) for _, group in groupby(found, lambda row: row.column)]
    return [
        ColumnRejects(rows[0].column, rows[0].number, [_reject(row) for row in rows])
        for rows in groups
    ]


class _Ranked(Protocol):
    """A row of `RunRejection` with the number of rejections of its column."""

    row_number: int
    column: str | None
    field_key: str | None
    value: str | None
    reason: str
    number: int


async def rejects_as_csv(work: UnitOfWork, workspace_id: Id, run_id: Id) -> bytes:
    """All that is kept of what a run left out, as RFC 4180 in UTF-8 with a byte order mark.

    Text that a spreadsheet would read as a formula is led by an apostrophe.
    """
    ordered = _rejections(workspace_id, run_id).order_by(run_rejection.c.place)
    rows = await work.rows(ordered, of=RunRejection)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_HEADERS)
    writer.writerows(
        map(csv_cell, (row.row_number, row.column, row.field_key, row.value, row.reason))
        for row in rows
    )
    return text.getvalue().encode("utf-8-sig")


def _rejections(workspace_id: Id, run_id: Id) -> sa.Select[tuple[object, ...]]:
    return sa.select(run_rejection).where(
        run_rejection.c.workspace_id == workspace_id, run_rejection.c.run_id == run_id
    )


def _reject(row: RunRejection | _Ranked) -> shapes.Reject:
    return shapes.Reject(
        type=shapes.RejectType.ROW if row.column is None else shapes.RejectType.CELL,
        row=row.row_number,
        column=row.column,
        field_key=row.field_key,
        value=row.value,
        reason=row.reason,
    )

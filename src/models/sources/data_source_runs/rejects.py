"""Reading what runs left out, page by page or as a file."""

import csv
import io

from sqlalchemy import Select, func, select

from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.record_exports.rules import csv_cell
from models.sources.data_source_runs.queries import run_in_workspace
from models.sources.data_source_runs.rows import RejectionRow
from models.sources.data_source_runs.shapes import Reject, RejectList, RejectType
from models.sources.data_source_runs.tables import run_rejection
from runtime.database import UnitOfWork

_HEADERS = ("Row", "Column", "Field", "Value", "Reason")


async def list_rejects(
    work: UnitOfWork, workspace_id: Id, run_id: Id, page: PageRequest
) -> RejectList:
    """A page of what a run left out, which the caller may see. Raises `NotFoundError`."""
    run = await run_in_workspace(work, workspace_id, run_id)
    rows = _rejections(workspace_id, run_id)
    rejections = await page.ascending(work, rows, run_rejection.c.place, of=RejectionRow)
    kept = await work.scalar(select(func.count()).select_from(rows.subquery()))
    return RejectList(
        rejects=[_reject(row) for row in rejections.items],
        skipped_cells=(run.result or run.progress).get("lost", 0),
        skipped_row_count=run.stats.get("rowsSkipped", 0),
        kept=kept,
        cursor=rejections.cursor,
    )


async def rejects_as_csv(work: UnitOfWork, workspace_id: Id, run_id: Id) -> bytes:
    """All that is kept of what a run left out, as RFC 4180 in UTF-8 with a byte order mark.

    Text that a spreadsheet would read as a formula is led by an apostrophe.
    """
    ordered = _rejections(workspace_id, run_id).order_by(run_rejection.c.place)
    rows = await work.rows(ordered, of=RejectionRow)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_HEADERS)
    writer.writerows(
        map(csv_cell, (row.row_number, row.column, row.field_key, row.value, row.reason))
        for row in rows
    )
    return text.getvalue().encode("utf-8-sig")


def _rejections(workspace_id: Id, run_id: Id) -> Select[tuple[object, ...]]:
    return select(run_rejection).where(
        run_rejection.c.workspace_id == workspace_id, run_rejection.c.run_id == run_id
    )


def _reject(row: RejectionRow) -> Reject:
    return Reject(
        type=RejectType.ROW if row.column is None else RejectType.CELL,
        row=row.row_number,
        column=row.column,
        field_key=row.field_key,
        value=row.value,
        reason=row.reason,
    )

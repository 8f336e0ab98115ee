"""Tables of providers as databases, brought in by the runs that import spreadsheets."""

from collections.abc import Sequence

from sqlalchemy import select

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.sources.data_source_runs.commands.imports import accept_import
from models.sources.data_source_runs.queries import get_import, other_sheets
from models.sources.data_source_runs.rules import OPEN_RUN
from models.sources.data_source_runs.shapes import ImportSpreadsheet
from models.sources.data_source_runs.tables import data_source_run
from models.sources.resource_imports.native import (
    Outcome,
    current_item,
    keep_name,
    local_state,
    note,
)
from models.sources.resource_imports.rows import change
from models.sources.resource_imports.rules import can_name_sheet
from models.sources.resource_imports.tables import ImportedResourceRow
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import ValidationError


async def begin_database(
    work: UnitOfWork,
    actor: Actor,
    job_id: Id,
    row: ImportedResourceRow,
    parent_item_id: Id | None,
) -> Outcome | None:
    """Accept the run that brings the rows in; None while it is open.

    Its id follows from the job, so that a repeated chunk accepts no second run. A database that
    people changed since is kept. Raises what `accept_import` raises.
    """
    body: JsonObject = {
        "label": row.resource_name,
        "kind": "connection",
        "connectionId": str(row.connection_id),
        "resource": {
            "externalType": row.external_type,
            "externalId": row.external_id,
            "name": row.resource_name,
            "surfaceKind": "spreadsheet",
            "capabilities": [],
        },
    }
    if row.sheet_name is not None:
        body["sheetName"] = row.sheet_name
    if row.item_id is None:
        if parent_item_id is not None:
            body["parentItemId"] = str(parent_item_id)
    else:
        placed = await current_item(work, actor, row.item_id)
        if placed is None or await local_state(work, row, placed) != row.local_state:
            return await note(work, row, Outcome.KEPT)
        body |= {"targetDatabaseId": str(placed.target_id), "mode": "replace"}
    run_id = derived_id("resource-import", str(job_id), str(row.id))
    await accept_import(work, actor, run_id, ImportSpreadsheet.model_validate(body))
    await change(work, row, run_id=run_id)
    return None


async def finish_database(
    work: UnitOfWork, actor: Actor, row: ImportedResourceRow
) -> Outcome | None:
    """What the run of a row did; None while it is open.

    Raises ValidationError for a run that failed.
    """
    assert row.run_id is not None, "it was accepted"
    run = await get_import(work, actor, row.run_id)
    if run.status in OPEN_RUN:
        return None
    if run.result is None:
        raise ValidationError(run.error or "The table could not be brought in.")
    item_id = run.result.item_id
    placed = await current_item(work, actor, item_id)
    if placed is None:
        return await note(work, row, Outcome.KEPT)
    state = await local_state(work, row, placed)
    renamed = await keep_name(work, actor, row, placed)
    stats = run.stats
    written = stats.rows_inserted + stats.rows_updated + stats.rows_removed
    outcome = Outcome.UPDATED if written or renamed else Outcome.UNCHANGED
    outcome = Outcome.CREATED if row.item_id is None else outcome
    return await note(work, row, outcome, item_id=item_id, local_state=state)


async def sheets_beside(work: UnitOfWork, row: ImportedResourceRow) -> list[str]:
    """The sheets of a workbook that the run of its row did not bring in."""
    if row.run_id is None:
        return []
    named = await other_sheets(work, row.workspace_id, row.run_id)
    return [name for name in named if can_name_sheet(name)]


async def open_runs(work: UnitOfWork, run_ids: Sequence[Id | None]) -> Sequence[Id]:
    """Those of these runs that are still open."""
    rows = await work.rows(
        select(data_source_run.c.id).where(
            data_source_run.c.id.in_([one for one in run_ids if one is not None]),
            data_source_run.c.status.in_([status.value for status in OPEN_RUN]),
        )
    )
    return [row.id for row in rows]

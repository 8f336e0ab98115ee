"""Tables of providers as databases, brought in by the runs that import spreadsheets."""

from collections.abc import Sequence

from models.content.items.queries import target_of
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.fields.queries import load_schema
from models.sources.data_source_runs.commands.imports import Renewed, accept_import
from models.sources.data_source_runs.queries import other_sheets, run_in_workspace
from models.sources.data_source_runs.rules import OPEN_RUN
from models.sources.data_source_runs.shapes import ImportSpreadsheet
from models.sources.resource_imports.native import (
    current_item,
    keep_name,
    note,
)
from models.sources.resource_imports.outcomes import Outcome, PartCounts
from models.sources.resource_imports.rows import ImportedRow, change
from models.sources.resource_imports.rules import can_name_sheet
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import ValidationError


async def begin_database(
    work: UnitOfWork,
    actor: Actor,
    job_id: Id,
    row: ImportedRow,
    parent_item_id: Id | None,
) -> Outcome | None:
    """Accept the run that brings the rows in; None while it is open.

    Its id follows from the job, so that a repeated chunk accepts no second run. What people changed
    in the database stays, also that they removed fields. Raises what `accept_import` raises.
    """
    left_out: Sequence[str] = ()
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
        if placed is None:
            return await note(work, row, Outcome.KEPT)
        body["targetDatabaseId"] = str(placed.target_id)
        fields = (await load_schema(work, row.workspace_id, target_of(placed))).fields
        left_out = [key for key in (row.local_state or "").split() if key not in fields]
    run_id = derived_id("resource-import", str(job_id), str(row.id))
    renewed = Renewed(row.id, left_out)
    await accept_import(work, actor, run_id, ImportSpreadsheet.model_validate(body), renewed)
    await change(work, row, run_id=run_id)
    return None


async def finish_database(
    work: UnitOfWork, actor: Actor, row: ImportedRow
) -> tuple[Outcome, PartCounts] | None:
    """The outcome of a row's run, and the counts of its rows; None while it is open.

    Raises ValidationError for a run that failed.
    """
    assert row.run_id is not None, "it was accepted"
    run = await run_in_workspace(work, actor.workspace_id, row.run_id)
    if run.status in OPEN_RUN:
        return None
    if run.result is None:
        raise ValidationError(run.error or "The table could not be brought in.")
    item_id, counts = Id(run.result["itemId"]), _counted(run.stats)
    placed = await current_item(work, actor, item_id)
    if placed is None:
        return await note(work, row, Outcome.KEPT), PartCounts()
    renamed = await keep_name(work, actor, row, placed)
    outcome = Outcome.UPDATED if renamed else counts.outcome
    outcome = Outcome.CREATED if row.item_id is None else outcome
    filled = {one["fieldKey"] for one in run.progress["mapping"]}
    keys = " ".join(sorted({*filled, *(row.local_state or "").split()}))
    return await note(work, row, outcome, item_id=item_id, local_state=keys), counts


def _counted(stats: JsonObject) -> PartCounts:
    """The counts of a run; a row whose record stays away was counted as skipped."""
    names = ("inserted", "updated", "unchanged", "removed", "kept")
    counted = {name: stats[f"rows{name.capitalize()}"] for name in names}
    return PartCounts(created=counted.pop("inserted"), **counted)


async def sheets_beside(work: UnitOfWork, row: ImportedRow) -> list[str]:
    """The sheets of a workbook that the run of its row did not bring in."""
    if row.run_id is None:
        return []
    named = await other_sheets(work, row.workspace_id, row.run_id)
    return [name for name in named if can_name_sheet(name)]

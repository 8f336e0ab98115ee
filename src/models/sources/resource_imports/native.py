"""Native items that an import makes, and refreshes unless people changed them."""

from collections.abc import Sequence

from models.content.files.commands import discard_file, register_private_files
from models.content.files.rules import Content
from models.content.items.commands import change_item, create_items_for, rename_item
from models.content.items.queries import find_item, placement, target_of
from models.content.items.shapes import ItemRow
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.data.fields.queries import load_schema
from models.sources.data_source_runs.imports import Renewed, accept_import
from models.sources.data_source_runs.queries import other_sheets, run_in_workspace
from models.sources.data_source_runs.rules import OPEN_RUN
from models.sources.data_source_runs.shapes import ImportSpreadsheet
from models.sources.resource_imports.rows import ImportedRow, change, settle, settle_all
from models.sources.resource_imports.rules import ImportedKind, Outcome, PartCounts, can_name_sheet
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import ValidationError
from runtime.ids import new_id


async def current_item(work: UnitOfWork, actor: Actor, item_id: Id | None) -> ItemRow | None:
    """The item of a row, if it is still there and the actor may edit it."""
    if item_id is None or await placement.level(work, actor, item_id) < Level.EDIT:
        return None
    return await find_item(work, actor.workspace_id, item_id)


async def keep_name(work: UnitOfWork, actor: Actor, row: ImportedRow, placed: ItemRow) -> bool:
    """Let an item follow the name of its resource, unless people named it; whether it did."""
    if placed.title != row.item_title or row.resource_name == row.item_title:
        return False
    await rename_item(work, actor, placed.id, row.resource_name)
    return True


async def note(work: UnitOfWork, row: ImportedRow, outcome: Outcome, **values: object) -> Outcome:
    """A row is done with; what is unchanged or kept has nothing else to remember."""
    if outcome is not Outcome.KEPT:
        values |= _state(row)
    await settle(work, row, **values)
    return outcome


def _state(row: ImportedRow) -> dict[str, object]:
    """The state in which an import leaves an item."""
    return {"revision": row.offered_revision, "item_title": row.resource_name}


async def new_item(
    work: UnitOfWork,
    actor: Actor,
    row: ImportedRow,
    parent_item_id: Id | None,
    target_id: Id | None,
) -> Id:
    """The item of a resource that was not imported before, below a parent that was checked."""
    kind = ImportedKind(row.kind).item_kind
    titles = [(target_id, row.resource_name)]
    [made] = await create_items_for(work, actor.workspace_id, parent_item_id, kind, titles)
    return made


async def make_folder(
    work: UnitOfWork, actor: Actor, row: ImportedRow, parent_item_id: Id | None
) -> Outcome:
    """The folder of a resource. Its row stays pending until the folder is listed."""
    if row.item_id is None:
        made = await new_item(work, actor, row, parent_item_id, None)
        await note(work, row, Outcome.CREATED, item_id=made)
        return Outcome.CREATED
    return await _renamed(work, actor, row)


async def make_files(
    work: UnitOfWork,
    actor: Actor,
    parent_item_id: Id | None,
    files: Sequence[tuple[ImportedRow, Content]],
) -> None:
    """The files of resources that were not imported before, below a parent that was checked."""
    entries = [(new_id(), row, content) for row, content in files]
    await _register(work, actor, [(file_id, content) for file_id, _, content in entries])
    titles = [(file_id, row.resource_name) for file_id, row, _ in entries]
    kind = ImportedKind.FILE.item_kind
    items = await create_items_for(work, actor.workspace_id, parent_item_id, kind, titles)
    await settle_all(
        work,
        [
            (row, {"item_id": item_id, **_state(row), **_file_state(file_id, content)})
            for item_id, (file_id, row, content) in zip(items, entries, strict=True)
        ],
    )


async def refresh_file(
    work: UnitOfWork, actor: Actor, row: ImportedRow, content: Content
) -> Outcome:
    """The file of a resource that was imported before; `content` is in the object store."""
    placed, same = await refreshed(work, actor, row, content.sha256.hex())
    if placed is None or same is not None:
        return same or Outcome.KEPT
    if str(placed.target_id) != row.local_state:
        return await note(work, row, Outcome.KEPT)
    file_id = new_id()
    await _register(work, actor, [(file_id, content)])
    await change_item(work, actor, placed.id, {"target_id": file_id})
    await discard_file(work, actor, target_of(placed))
    await keep_name(work, actor, row, placed)
    return await note(work, row, Outcome.UPDATED, **_file_state(file_id, content))


async def _register(work: UnitOfWork, actor: Actor, files: Sequence[tuple[Id, Content]]) -> None:
    # An item places each in this transaction: until then it is visible to no one.
    whose = {"workspace_id": actor.workspace_id, "user_id": actor.user_id}
    await register_private_files(work, files, **whose)


def _file_state(file_id: Id, content: Content) -> dict[str, object]:
    return {"digest": content.sha256.hex(), "local_state": str(file_id)}


async def refreshed(
    work: UnitOfWork, actor: Actor, row: ImportedRow, digest: str
) -> tuple[ItemRow | None, Outcome | None]:
    """The item to write to; or what became of it, where nothing is to be written."""
    placed = await current_item(work, actor, row.item_id)
    if placed is None:
        return None, await note(work, row, Outcome.KEPT)
    if digest == row.digest:
        renamed = await keep_name(work, actor, row, placed)
        return placed, await note(work, row, Outcome.UPDATED if renamed else Outcome.UNCHANGED)
    return placed, None


async def as_it_was(work: UnitOfWork, actor: Actor, row: ImportedRow) -> Outcome | None:
    """The outcome of a resource of the same revision, without asking for it; None to ask."""
    same = row.offered_revision is not None and row.offered_revision == row.revision
    if not same or row.item_id is None or row.kind == ImportedKind.FOLDER:
        return None
    return await _renamed(work, actor, row)


async def _renamed(work: UnitOfWork, actor: Actor, row: ImportedRow) -> Outcome:
    """The outcome of an item that changes by its name alone."""
    placed = await current_item(work, actor, row.item_id)
    if placed is None:
        return await note(work, row, Outcome.KEPT)
    renamed = await keep_name(work, actor, row, placed)
    return await note(work, row, Outcome.UPDATED if renamed else Outcome.UNCHANGED)


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
        raise ValidationError(run.error or "The table could not be imported.")
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

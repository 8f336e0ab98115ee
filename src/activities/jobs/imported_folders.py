"""The listing of folders that are imported: what is in one is pending then."""

from activities.jobs.import_progress import ImportProgress
from activities.jobs.transactions import ask_outside
from activities.providers.adapter import MAX_LISTED, RETRIED, Listing, ProblemKind, ProviderProblem
from activities.providers.calls import OpenConnection, in_time
from models.core.base import Id, JsonObject
from models.messages.jobs.rows import JobRow
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.resource_imports import rows
from models.sources.resource_imports.rules import MAX_ENTRIES
from runtime.database import Transaction

CHUNK_PAGES = 20
_NOT = "A resource of the kind {} cannot be imported."


async def list_folder(work: Transaction, job: JobRow, connection: OpenConnection) -> JsonObject:
    """List some pages of the folder that the job is at; gives its progress.

    Raises ProviderProblem for what concerns the whole import.
    """
    progress = ImportProgress(job.progress)
    row = await rows.find_row(work, job.workspace_id, Id(job.progress["folder"]))
    assert row is not None, "a folder that is listed has its row"
    try:
        listing = _pages(connection, row.external_id, job.progress["cursor"])
        resources, cursor = await ask_outside(work, job, listing)
    except ProviderProblem as problem:
        if row.id == row.root_id or problem.kind in {*RETRIED, ProblemKind.AUTH}:
            raise
        progress.skip(row.resource_name, problem.message)
        return {**progress.facts, "folder": None, "cursor": None}
    room = MAX_ENTRIES - await rows.count_rows(work, row.root_id)
    _, left_out = await rows.record_listed(work, row, job.id, resources, room)
    for one in left_out:
        progress.skip(one.name, _NOT.format(one.surface_kind))
    if len(resources) > room:
        progress.skip(row.resource_name, f"An import holds at most {MAX_ENTRIES:,} resources.")
        cursor = None
    following = job.progress["folder"] if cursor else None
    return {**progress.facts, "folder": following, "cursor": cursor}


async def _pages(
    connection: OpenConnection, folder: str, cursor: str | None
) -> tuple[list[ProviderResource], str | None]:
    """The resources of some pages, and where the next one begins."""
    resources = list[ProviderResource]()
    adapter = connection.adapter
    for _ in range(CHUNK_PAGES):
        listing = Listing(folder, limit=MAX_LISTED, cursor=cursor)
        asked_for = adapter.browse(connection.access, listing)
        for page in (await in_time(asked_for, adapter.listing_seconds)).pages():
            resources += page.resources[:MAX_LISTED]
            cursor = page.cursor
        if cursor is None or len(resources) >= CHUNK_PAGES * MAX_LISTED:
            break
    return resources, cursor

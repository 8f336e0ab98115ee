"""Reading the state of workspace exports."""

from models.content.files.queries import stored_file
from models.content.files.shapes import StoredFile
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.lifecycle.workers import with_worker_wait
from models.core.pagination import PageRequest
from models.messages.jobs.queries import JOB, find_job, jobs_of
from models.messages.jobs.rows import JobRow
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.workspace.workspace_exports.shapes import WorkspaceExport, WorkspaceExportList
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.families import Family


async def workspace_export(
    work: UnitOfWork, actor: Actor, export_id: Id, keys: KeyRing
) -> WorkspaceExport:
    """An export of the workspace. Raises `NotFoundError`."""
    found = await find_job(work, actor.workspace_id, Family.WORKSPACE_EXPORT, export_id)
    file = None
    if found.status == JobStatus.SUCCEEDED:
        file = await stored_file(work, actor.workspace_id, found.id, keys)
    return await with_worker_wait(work, _shown(found, file), is_open=found.status in OPEN_JOB)


async def list_workspace_exports(
    work: UnitOfWork, actor: Actor, page: PageRequest
) -> WorkspaceExportList:
    """The exports of the workspace, newest first, without their files."""
    rows = jobs_of(actor.workspace_id, Family.WORKSPACE_EXPORT, *JOB)
    found = await page.descending(work, rows, JOB.id, of=JobRow)
    shown = [_shown(row, None) for row in found.items]
    return WorkspaceExportList(workspace_exports=shown, cursor=found.cursor)


def _shown(found: JobRow, file: StoredFile | None) -> WorkspaceExport:
    result = found.result if found.status == JobStatus.SUCCEEDED else None
    return WorkspaceExport(
        id=found.id,
        status=JobStatus(found.status),
        bundle_object_key=result and result["objectKey"],
        bundle_checksum=result and result["sha256"],
        bytes=result and result["bytes"],
        file=file,
        error=found.error,
        created_at=found.created_at,
        completed_at=found.completed_at,
    )

"""Reading the state of workspace exports."""

from models.content.files.queries import stored_file
from models.core.access.rules import Actor
from models.core.base import Id
from models.messages.jobs.queries import find_job
from models.messages.jobs.rules import JobStatus
from models.workspace.workspace_exports.shapes import WorkspaceExport
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.families import Family


async def workspace_export(
    work: UnitOfWork, actor: Actor, export_id: Id, keys: KeyRing
) -> WorkspaceExport:
    """An export of the workspace. Raises `NotFoundError`."""
    found = await find_job(work, actor.workspace_id, Family.WORKSPACE_EXPORT, export_id)
    made = found.result if found.status == JobStatus.SUCCEEDED else None
    file = None
    if made is not None:
        file = await stored_file(work, actor.workspace_id, found.id, keys)
    return WorkspaceExport(
        id=found.id,
        status=JobStatus(found.status),
        bundle_object_key=made and made["objectKey"],
        bundle_checksum=made and made["sha256"],
        bytes=made and made["bytes"],
        file=file,
        error=found.error,
        created_at=found.created_at,
        completed_at=found.completed_at,
    )

"""Workspace exports: a whole workspace as a bundle."""

import re

from models.content.files.commands import register_private_file
from models.content.files.queries import StoredFile, stored_file
from models.content.files.rules import Content, file_name
from models.core.access.rules import Actor, Scope
from models.core.base import EXAMPLE_ID, Id, Input, Moment, Shape, example
from models.core.lifecycle.lost_workers import with_worker_wait
from models.core.pagination import Listed, PageRequest
from models.messages.jobs import store as jobs
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.people.workspaces import WorkspaceBody, get_workspace
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError
from runtime.temporal.workflow_kinds import WorkflowKind


class CreateWorkspaceExport(Input):
    """Body of create workspace export; nothing can be chosen."""

    model_config = example({})


class WorkspaceExport(Shape):
    """An export of a workspace.

    `file` is the bundle, once the export has succeeded, and is kept for 30 days;
    `bundleObjectKey` and `bundleChecksum`, the SHA-256 in hexadecimal digits, name it where it is
    brought in again.
    """

    model_config = Shape.model_config | example(
        {"id": EXAMPLE_ID, "status": "queued", "createdAt": "2026-01-01T00:00:00.000Z"}
    )

    id: Id
    status: JobStatus
    bundle_object_key: str | None = None
    bundle_checksum: str | None = None
    bytes: int | None = None
    file: StoredFile | None = None
    error: str | None = None
    waiting_for_worker_since: Moment | None = None
    created_at: Moment
    completed_at: Moment | None = None


class WorkspaceExportList(Listed):
    """A page of exports, each without its `file`."""

    model_config = Shape.model_config | example(
        {
            "workspaceExports": [
                {"id": EXAMPLE_ID, "status": "running", "createdAt": "2026-01-01T00:00:00.000Z"}
            ],
            "cursor": "c2Vjb25k",
        }
    )

    workspace_exports: list[WorkspaceExport]


async def workspace_export(
    work: UnitOfWork, actor: Actor, export_id: Id, keys: KeyRing
) -> WorkspaceExport:
    """An export of the workspace. Raises `NotFoundError`."""
    found = await jobs.find_job(work, actor.workspace_id, WorkflowKind.WORKSPACE_EXPORT, export_id)
    file = None
    if found.status == JobStatus.SUCCEEDED:
        file = await stored_file(work, actor.workspace_id, found.id, keys)
    return await with_worker_wait(work, _shown(found, file), is_open=found.status in OPEN_JOB)


async def list_workspace_exports(
    work: UnitOfWork, actor: Actor, page: PageRequest
) -> WorkspaceExportList:
    """The exports of the workspace, newest first, without their files."""
    rows = jobs.jobs_of(actor.workspace_id, WorkflowKind.WORKSPACE_EXPORT, *jobs.JOB)
    found = await page.descending(work, rows, jobs.JOB.id, of=jobs.JobRow)
    return WorkspaceExportList.of(found, lambda row: _shown(row, None))


def _shown(found: jobs.JobRow, file: StoredFile | None) -> WorkspaceExport:
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


_WORKFLOW_KIND = WorkflowKind.WORKSPACE_EXPORT
_TRIES = 5
"""Looks for the open export: one that was in the way may have ended before it is read."""
_SLASH = re.compile(r"[/\\]")
"""Characters that would make directories of the name in a file name."""


async def accept_workspace_export(work: UnitOfWork, actor: Actor, export_id: Id) -> Id:
    """Accept the job that writes a bundle; its id, or that of the one that is open.

    Raises `ConflictError` when exports of others begin and end all the time.
    """
    whose, summary = actor.workspace_id, "Export the workspace"
    for _ in range(_TRIES):
        if await jobs.accept_job(work, actor, _WORKFLOW_KIND, export_id, whose, summary=summary):
            return export_id
        running = await jobs.open_job(work, whose, _WORKFLOW_KIND)
        if running is not None:
            return running.id
    raise ConflictError("Another export of the workspace is starting or ending. Try again.")


async def cancel_workspace_export(work: UnitOfWork, actor: Actor, export_id: Id) -> None:
    """Cancel an open export; a finished one stays as it is. Raises `NotFoundError`."""
    found = await jobs.find_job(work, actor.workspace_id, _WORKFLOW_KIND, export_id)
    if found.status in OPEN_JOB:
        await jobs.cancel_job(work, found)


async def exported_workspace(work: UnitOfWork, job: jobs.JobRow) -> WorkspaceBody:
    """The workspace of an export, whose actor must still be allowed to export it.

    Raises `DeniedError`.
    """
    actor = await jobs.job_actor(work, job)
    if Scope.WORKSPACE_UPDATE not in actor.scopes:
        raise DeniedError("The requester is no longer allowed to export the workspace.")
    entry = await get_workspace(work, actor.principal, job.workspace_id, actor.role)
    return entry.workspace


async def record_bundle(
    work: UnitOfWork, job: jobs.JobRow, name: str, object_key: str, size: int, sha256: bytes
) -> None:
    """Record the file of an export, private to its actor; the file's id is the export's."""
    content = Content(
        name=file_name(f"{_SLASH.sub('-', name)}.zip"),
        mime_type="application/zip",
        byte_size=size,
        sha256=sha256,
        object_key=object_key,
    )
    whose = {"workspace_id": job.workspace_id, "user_id": job.actor_user_id}
    await register_private_file(work, content, file_id=job.id, **whose)

"""Accepting exports of workspaces, and recording the bundles they become."""

import re

from models.content.files.commands import register_private_file
from models.content.files.rules import Content, file_name
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.messages.jobs.commands import accept_job, cancel_job
from models.messages.jobs.queries import find_job, job_actor, open_job
from models.messages.jobs.rows import JobRow
from models.messages.jobs.rules import OPEN_JOB
from models.people.workspaces.queries import get_workspace
from models.people.workspaces.shapes import WorkspaceBody
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError
from runtime.families import Family

_FAMILY = Family.WORKSPACE_EXPORT
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
        if await accept_job(work, actor, _FAMILY, export_id, whose, summary=summary):
            return export_id
        running = await open_job(work, whose, _FAMILY)
        if running is not None:
            return running.id
    raise ConflictError("Exports of the workspace begin and end at this moment. Try again.")


async def cancel_workspace_export(work: UnitOfWork, actor: Actor, export_id: Id) -> None:
    """Cancel an open export; a finished one stays as it is. Raises `NotFoundError`."""
    found = await find_job(work, actor.workspace_id, _FAMILY, export_id)
    if found.status in OPEN_JOB:
        await cancel_job(work, found)


async def exported_workspace(work: UnitOfWork, job: JobRow) -> WorkspaceBody:
    """The workspace of an export, whose actor must still be allowed to export it.

    Raises `DeniedError`.
    """
    actor = await job_actor(work, job)
    if Scope.WORKSPACE_UPDATE not in actor.scopes:
        raise DeniedError("Whoever asked for this may not export the workspace any more.")
    entry = await get_workspace(work, actor.principal, job.workspace_id, actor.role)
    return entry.workspace


async def record_bundle(
    work: UnitOfWork, job: JobRow, name: str, object_key: str, size: int, sha256: bytes
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

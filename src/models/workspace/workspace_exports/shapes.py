"""Workspace exports on the wire."""

from models.content.files.shapes import StoredFile
from models.core.base import EXAMPLE_ID, Id, Input, Moment, Nullable, Shape, example
from models.messages.jobs.rules import JobStatus


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


class WorkspaceExportList(Shape):
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
    cursor: Nullable[str]

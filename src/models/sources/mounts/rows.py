"""The type of a mount's row, for the sync of it."""

from typing import Any, Protocol

from models.core.base import Id


class MountRow(Protocol):
    """A mount as a sync reads it; `synced_revision` is that of the last whole sync."""

    id: Id
    workspace_id: Id
    item_id: Id
    connection_id: Id | None
    root_mount_id: Id | None
    external_id: str
    resource: dict[str, Any]
    recursive: bool
    status: str
    seen_by: Id | None
    sync_job_id: Id | None
    synced_revision: str | None
    entries: int
    truncated: bool
    created_by_user_id: Id | None

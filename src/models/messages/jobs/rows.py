"""The type of a job's row, for whoever does the work."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class JobRow(Protocol):
    """A job: `input` is what was asked for, `progress` where the next chunk begins."""

    id: Id
    workspace_id: Id
    family: str
    subject_id: Id
    actor_user_id: Id
    status: str
    input: dict[str, Any]
    progress: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None
    error_code: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None

"""The type of a delivery's row, for whoever sends or shows it."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class DeliveryRow(Protocol):
    """A delivery of `subject_id` to `target_id`; `input` is what the channel needs beside them."""

    id: Id
    workspace_id: Id
    channel: str
    subject_id: Id
    target_id: Id
    input: dict[str, Any]
    status: str
    attempts: int
    next_attempt_at: datetime | None
    answer_status: int | None
    error: str | None
    error_code: str | None
    executing: bool
    executions: int
    expires_at: datetime
    created_at: datetime
    completed_at: datetime | None

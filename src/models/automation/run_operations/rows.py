"""The type of the row of an operation, for whoever executes it."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class OperationRow(Protocol):
    """An operation: `selection` says of which runs, `parameters` what is done to each."""

    id: Id
    workspace_id: Id
    actor_user_id: Id
    action: str
    status: str
    selection: dict[str, Any]
    parameters: dict[str, Any]
    rate: float | None
    undoes_id: Id | None
    execution: int
    selected: int
    total: int | None
    treated: int
    succeeded: int
    skipped: int
    failed: int
    paced_until: datetime | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None

"""The types of the rows of a run and of the columns of its source, for whoever executes it."""

from datetime import datetime
from typing import Any, Protocol

from models.core.base import Id


class SourceRunRow(Protocol):
    """A run: `plan` is what it does, `progress` how far it came, `stats` what it counted."""

    id: Id
    workspace_id: Id
    data_source_id: Id | None
    database_id: Id | None
    status: str
    trigger: str
    actor_user_id: Id | None
    chain: list[Id]
    plan: dict[str, Any]
    progress: dict[str, Any]
    stats: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None
    error_kind: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    reverted_at: datetime | None


class RejectionRow(Protocol):
    """The row of what a run left out: a cell, or a row without a column."""

    place: int
    row_number: int
    column: str | None
    field_key: str | None
    value: str | None
    reason: str


class SourceColumnsRow(Protocol):
    """The known columns of a source."""

    database_id: Id
    columns: list[dict[str, Any]]
    headers: list[str]
    config: str
    json_path: str | None


def source_id_of(run: SourceRunRow) -> Id:
    """The source of a run's rows: its data source, what an import renews, or the run itself."""
    renewed = run.plan.get("sourceId")
    return run.data_source_id or (run.id if renewed is None else Id(renewed))

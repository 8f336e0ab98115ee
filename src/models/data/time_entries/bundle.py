"""Time entries in a bundle: only completed ones."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.content.items.joins import ITEM, live_items
from models.core.base import Id
from models.core.bundles import USER, BundleKind, Row, Stage
from models.data.time_entries.rules import EntryStatus
from models.data.time_entries.tables import time_entry


def _rows(workspace_id: Id) -> sa.Select[Any]:
    """Completed entries whose item, which says who sees them, is outside the trash."""
    seen = time_entry.c.item_id.in_(live_items(workspace_id, ITEM.id))
    return sa.select(time_entry).where(
        time_entry.c.workspace_id == workspace_id,
        time_entry.c.status == EntryStatus.COMPLETED.value,
        time_entry.c.deleted_at.is_(None),
        sa.or_(time_entry.c.item_id.is_(None), seen),
    )


def _problem(row: Row) -> str | None:
    """The problem that keeps a row from being a completed entry.

    Of other entries one at most may run for a person, and only executions, which no import starts,
    would end them.
    """
    if row["status"] != EntryStatus.COMPLETED:
        return f"status: only completed entries are imported; this one is {row['status']}."
    for name in ("endedAt", "closedAt", "durationMs"):
        if row.get(name) is None:
            return f"{name}: is required for a completed entry."
    if row.get("pausedAt") is not None:
        return "pausedAt: must be null for a completed entry."
    if min(row["durationMs"], row["accumulatedPausedMs"]) < 0:
        return "durationMs, accumulatedPausedMs: must not be negative."
    try:
        backwards = datetime.fromisoformat(row["endedAt"]) < datetime.fromisoformat(
            row["startedAt"]
        )
    except ValueError:
        return "startedAt, endedAt: must be valid times."
    return "endedAt: must not be before startedAt." if backwards else None


TIME_ENTRIES = BundleKind(
    name="time_entry",
    stage=Stage.AUTOMATIONS,
    file="time_entries.ndjson",
    table=time_entry,
    rows=_rows,
    references={
        "user_id": USER,
        "item_id": "item",
        "database_id": "database",
        "field_id": "field",
        "created_by_user_id": USER,
        "updated_by_user_id": USER,
    },
    required=("user_id", "item_id"),
    # An entry outlives what its time was spent on.
    contents=("target_id",),
    left_out={
        "client_mutation_id": "makes a repeated call one, in the source alone",
        "mutation_digest": "as client_mutation_id",
        "update_mutation_id": "as client_mutation_id",
        "deleted_at": "marks what an import has not shown yet",
    },
    hides=True,
    check=_problem,
)

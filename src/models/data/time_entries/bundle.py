"""Time entries in a bundle: those that are completed."""

from typing import Any

from sqlalchemy import Select, or_, select

from models.content.items.joins import ITEM, live_items
from models.core.base import Id
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import USER, Stage
from models.data.time_entries.rules.kinds import EntryStatus
from models.data.time_entries.tables import time_entry


def _rows(workspace_id: Id) -> Select[Any]:
    """Completed entries whose item, which says who sees them, is outside the trash."""
    seen = time_entry.c.item_id.in_(live_items(workspace_id, ITEM.id))
    return select(time_entry).where(
        time_entry.c.workspace_id == workspace_id,
        time_entry.c.status == EntryStatus.COMPLETED.value,
        time_entry.c.deleted_at.is_(None),
        or_(time_entry.c.item_id.is_(None), seen),
    )


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
    needed=("user_id", "item_id"),
    # An entry outlives what its time was spent on.
    contents=("target_id",),
    left_out={
        "client_mutation_id": "makes a repeated call one, in the source alone",
        "mutation_digest": "as client_mutation_id",
        "update_mutation_id": "as client_mutation_id",
        "deleted_at": "tells what an import has not shown yet",
    },
    hides=True,
)

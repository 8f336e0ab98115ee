"""Mounts in a bundle. They come in as links, without the connection that has the credentials."""

from typing import Any

from sqlalchemy import Select, case, select

from models.content.items.joins import live_item_of
from models.core.base import Id
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import USER, Stage
from models.sources.mounts.tables import mount

_SYNC = "is how far a sync with the provider has come"


def _rows(workspace_id: Id) -> Select[Any]:
    """Mounts in the tree, entries behind their roots."""
    depth = case((mount.c.root_mount_id.is_(None), 0), else_=1).label("depth")
    return (
        select(mount, depth).join(*live_item_of(mount)).where(mount.c.workspace_id == workspace_id)
    )


MOUNTS = BundleKind(
    name="mount",
    stage=Stage.AUTOMATIONS,
    file="mounts.ndjson",
    table=mount,
    rows=_rows,
    references={"item_id": "item", "root_mount_id": "mount", "created_by_user_id": USER},
    contents=("resource",),
    left_out={
        "connection_id": "holds credentials, which no bundle has",
        **dict.fromkeys(("error", "seen_by", "pending", "sync_job_id", "synced_revision"), _SYNC),
        **dict.fromkeys(("next_run_at", "skipped_fires", "missed_fires"), _SYNC),
    },
    order=("depth", "id"),
    parent="root_mount_id",
)

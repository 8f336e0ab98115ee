"""The table of mounts, and its rows in a bundle: links, without the connection."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.content.items.joins import live_item_of
from models.core.base import Id
from models.core.bundles import USER, BundleKind, Stage
from models.sources.external_resources.rules.resources import MountStatus
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of


class Mount(SQLModel, table=True):
    """A resource of a provider at a place in the tree; without a connection it is a link.

    What a recursive mount found below its resource are its entries: mounts with its id as
    `root_mount_id`, each once. `seen_by` is the last sync that the provider showed it to; one that
    is `pending` is still to be listed by that sync. `sync_job_id` and what follows are the root's.
    """

    __tablename__ = "mount"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("item_id", "item.id"),
        same_workspace("root_mount_id", "mount.id", ondelete="CASCADE"),
        one_of("status", MountStatus),
        partial_index(
            "uq_mount_entry",
            "root_mount_id",
            "external_id",
            where="root_mount_id IS NOT NULL",
            unique=True,
        ),
        partial_index("ix_mount_pending", "root_mount_id", "id", where="pending"),
        partial_index(
            "ix_mount_resource",
            "workspace_id",
            "connection_id",
            "external_id",
            where="root_mount_id IS NULL",
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id = Field(unique=True)
    connection_id: Id | None = None
    root_mount_id: Id | None = None
    external_id: str
    resource: dict[str, Any] = Field(sa_type=JSONB)
    recursive: bool
    status: str
    error: str | None = None
    vanished_at: datetime | None = Field(default=None, sa_type=Timestamp)
    last_synced_at: datetime | None = Field(default=None, sa_type=Timestamp)
    seen_by: Id | None = None
    pending: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})
    sync_job_id: Id | None = None
    synced_revision: str | None = None
    entries: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    truncated: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})
    next_run_at: datetime | None = Field(default=None, sa_type=Timestamp)
    skipped_fires: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    missed_fires: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    created_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


mount = table_of(Mount)

_SYNC = "is how far a sync with the provider has come"


def _rows(workspace_id: Id) -> sa.Select[Any]:
    """Mounts in the tree, entries behind their roots."""
    depth = sa.case((mount.c.root_mount_id.is_(None), 0), else_=1).label("depth")
    return (
        sa.select(mount, depth)
        .join(*live_item_of(mount))
        .where(mount.c.workspace_id == workspace_id)
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

"""Mounts: their table, their rows in a bundle, their shapes on the wire, and reading them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.content.items.joins import ITEM, live_item_of
from models.content.items.queries import closed_items, get_item, placement_of
from models.content.items.shapes import ItemDetail
from models.core import base as core_base
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.bundles import USER, BundleKind, Stage
from models.core.openapi import documented_as
from models.core.pagination import Listed, PageRequest
from models.core.references.rules import Definition, Sought, SubjectKind, named_at
from models.core.schedules.timetables import Timetable, Timing
from models.messages.jobs.rules import OPEN_JOB
from models.messages.jobs.store import find_job, refusal_of
from models.sources.external_resources.rules.resources import MountStatus, ProviderResource
from models.sources.provider_calls import EXAMPLE_RESOURCE
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, UpstreamError
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of
from runtime.temporal.workflow_kinds import WorkflowKind


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


SYNC_SECONDS = 900
"""The time between two syncs of a mount."""

MAX_ENTRIES = 20_000
"""Entries of a recursive mount; what is beyond is left out, and the mount says so."""

SYNC_TIMING = Timing(
    timetable=Timetable(interval_seconds=SYNC_SECONDS), jitter_seconds=SYNC_SECONDS // 3
)

CANCELLED = "The sync was cancelled. Sync the mount again to complete it."
INTERRUPTED = "The sync was interrupted. It runs again at the next scheduled time."


class MountRow(Protocol):
    """A mount as a sync reads it; `synced_revision` is that of the last whole sync."""

    id: core_base.Id
    workspace_id: core_base.Id
    item_id: core_base.Id
    connection_id: core_base.Id | None
    root_mount_id: core_base.Id | None
    external_id: str
    resource: dict[str, Any]
    recursive: bool
    status: str
    seen_by: core_base.Id | None
    sync_job_id: core_base.Id | None
    synced_revision: str | None
    entries: int
    truncated: bool
    created_by_user_id: core_base.Id | None


class CreateMount(core_base.Input):
    """`config` of an item of the kind external_resource."""

    resource: ProviderResource
    connection_id: core_base.InputId | None = None
    recursive: bool = False


class MountResource(core_base.Input):
    """Body of mount: a recursive mount holds everything below the resource, too."""

    model_config = core_base.example(
        {"connectionId": core_base.EXAMPLE_ID, "resource": EXAMPLE_RESOURCE}
    )

    connection_id: core_base.InputId
    resource: ProviderResource
    recursive: bool = False
    parent_item_id: core_base.InputId | None = None
    title: core_base.Label | None = None


class MountDetail(core_base.Shape):
    """A mounted resource; without `connectionId` it is a link.

    A `stale` one is no longer shown by its provider and is kept as it was; `error` says why the
    provider could not be reached. `entries` is the number of entries of a recursive mount so far; a
    `truncated` one has reached the limit. `rootMountId` is the recursive mount that an entry
    belongs to.
    """

    id: core_base.Id
    workspace_id: core_base.Id
    item_id: core_base.Id
    connection_id: core_base.Id | None
    root_mount_id: core_base.Id | None
    resource: Annotated[core_base.JsonObject, documented_as("ProviderResource")]
    recursive: bool
    status: MountStatus
    syncing: bool = False
    entries: int
    truncated: bool
    error: str | None
    vanished_at: core_base.Moment | None
    last_synced_at: core_base.Moment | None
    next_run_at: core_base.Moment | None
    created_at: core_base.Moment
    updated_at: core_base.Moment


class MountedResource(core_base.Shape):
    """A resource with its place in the tree."""

    resource: Annotated[core_base.JsonObject, documented_as("ProviderResource")]
    item: ItemDetail
    mount: MountDetail


class MountList(Listed):
    mounts: list[MountDetail]


visible = placement_of(mount)
"""The placement of a mount: `await visible(work, workspace_ids, mount_id, user_id)`."""


def mount_detail(row: MountRow) -> MountDetail:
    """A row as the wire shows it."""
    detail = MountDetail.model_validate(row)
    detail.syncing = row.sync_job_id is not None
    return detail


async def mount_definitions(work: UnitOfWork, actor: Actor, sought: Sought) -> Sequence[Definition]:
    """The mounts of a connection, without their entries."""
    if sought.kind is not SubjectKind.CONNECTION:
        return []
    rows = await work.rows(
        sa.select(mount.c.id, mount.c.item_id, mount.c.connection_id, ITEM.title.label("label"))
        .join(*live_item_of(mount))
        .where(
            mount.c.workspace_id == actor.workspace_id,
            mount.c.connection_id == core_base.Id(sought.subject.id),
            mount.c.root_mount_id.is_(None),
        )
        .order_by(ITEM.title, mount.c.id)
    )
    return [
        Definition(
            kind="mount",
            id=row.item_id,
            label=row.label,
            scope=Scope.RESOURCES_READ,
            item_id=row.item_id,
            references=list(named_at(sought.kind, str(row.connection_id), "connectionId")),
        )
        for row in rows
    ]


async def find_mount(
    work: UnitOfWork, workspace_id: core_base.Id, mount_id: core_base.Id
) -> MountRow:
    """A mount whose item is not in the trash. Raises NotFoundError."""
    return await work.one(_mounts(workspace_id).where(mount.c.id == mount_id), "mount", of=MountRow)


async def get_mount(
    work: UnitOfWork, workspace_id: core_base.Id, mount_id: core_base.Id
) -> MountDetail:
    """A mount. Raises NotFoundError."""
    return mount_detail(await find_mount(work, workspace_id, mount_id))


async def list_mounts(work: UnitOfWork, actor: Actor, page: PageRequest) -> MountList:
    """The mounts that the actor sees, without their entries, newest first."""
    statement = _mounts(actor.workspace_id).where(
        mount.c.root_mount_id.is_(None),
        mount.c.item_id.not_in(sa.select(closed_items(actor).c.id)),
    )
    shown = await page.descending(work, statement, mount.c.created_at, mount.c.id, of=MountRow)
    return MountList.of(shown, mount_detail)


async def mounted_resource(
    work: UnitOfWork, workspace_id: core_base.Id, mount_id: core_base.Id
) -> MountedResource:
    """A mount with its item. Raises NotFoundError."""
    detail = await get_mount(work, workspace_id, mount_id)
    placed = await get_item(work, workspace_id, detail.item_id)
    return MountedResource(resource=detail.resource, item=placed, mount=detail)


async def mount_outcome(
    work: UnitOfWork, actor: Actor, job_id: core_base.Id, *, last: bool
) -> MountedResource | None:
    """The resource a job has mounted, as soon as it has a place; None while it has none.

    Raises why nothing was mounted, and InProgressError when this is the last time to ask.
    """
    job = await find_job(work, actor.workspace_id, WorkflowKind.MOUNT_SYNC, job_id)
    placed = (job.result or job.progress).get("mountId")
    if placed is not None:
        return await mounted_resource(work, actor.workspace_id, core_base.Id(placed))
    if job.status not in OPEN_JOB:
        raise refusal_of(job) or UpstreamError("The provider could not be reached. Try again.")
    if last:
        raise InProgressError("The provider is slow to respond. Try again with the same key.")
    return None


def _mounts(workspace_id: core_base.Id) -> sa.Select[Any]:
    return sa.select(mount).join(*live_item_of(mount)).where(mount.c.workspace_id == workspace_id)

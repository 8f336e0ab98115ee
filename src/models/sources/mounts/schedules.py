"""The schedules of mounts: what our rows say they should be."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy import select

from models.content.items.joins import ITEM, live_item_of
from models.core.base import Id
from models.core.schedules.commands import ScheduleTable, announce
from models.core.schedules.desired import DesiredSchedule, PassedOver, title_of
from models.people.workspaces.queries import live_workspace_of
from models.sources.mounts.rules import SYNC_TIMING
from models.sources.mounts.tables import mount
from runtime.database import UnitOfWork
from runtime.families import Family

ARCHIVED = "The item of the mount is archived."

_SYNCED = mount.c.root_mount_id.is_(None) & mount.c.connection_id.is_not(None)
"""Links are never synced; entries are with their root."""

_SCHEDULED = (
    select(
        mount.c.id,
        mount.c.workspace_id,
        mount.c.next_run_at,
        mount.c.skipped_fires,
        mount.c.missed_fires,
        ITEM.title.label("label"),
        ITEM.archived,
    )
    .join(*live_item_of(mount))
    .join(*live_workspace_of(mount))
    .where(_SYNCED)
)


class _Row(Protocol):
    id: Id
    workspace_id: Id
    label: str
    archived: bool
    next_run_at: datetime | None
    skipped_fires: int
    missed_fires: int


def _read(row: _Row) -> DesiredSchedule:
    return DesiredSchedule(
        family=Family.MOUNT_SCHEDULE,
        subject_id=row.id,
        workspace_id=row.workspace_id,
        title=title_of(row.label, "sync"),
        timing=SYNC_TIMING,
        paused=ARCHIVED if row.archived else None,
        next_run_at=row.next_run_at,
        passed_over=PassedOver(row.skipped_fires, row.missed_fires),
    )


MOUNT_SCHEDULES = ScheduleTable(mount, Family.MOUNT_SCHEDULE, _SCHEDULED, _read, _SYNCED)


async def mounts_placed(work: UnitOfWork, workspace_id: Id, mount_ids: Sequence[Id]) -> None:
    """Update schedules after items were trashed, archived or restored."""
    mine = mount.c.workspace_id == workspace_id
    await announce(work, MOUNT_SCHEDULES, mine & mount.c.id.in_(mount_ids))


async def mounts_closed(work: UnitOfWork, workspace_id: Id) -> None:
    """Stop the schedules of a deleted workspace."""
    await announce(work, MOUNT_SCHEDULES, mount.c.workspace_id == workspace_id)

"""The schedules of mounts: what our rows say they should be, and the sync of each due time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from models.content.items.joins import ITEM, live_item_of
from models.core.base import Id
from models.core.lifecycle.commands import stand_in_line
from models.core.schedules.commands import ScheduleTable, announce, scheduled, set_next_run
from models.core.schedules.timetables import DesiredSchedule, PassedOverCounts, due_run_id, title_of
from models.messages.jobs.rules import OPEN_JOB
from models.messages.jobs.store import find_job, record_job, start_request
from models.people.workspaces import live_workspace_of
from models.sources.mounts.queries import SYNC_TIMING, MountRow
from models.sources.mounts.tables import mount
from runtime.database import UnitOfWork
from runtime.temporal.families import Family
from runtime.temporal.outbox import StartRequest

ARCHIVED = "The item of the mount is archived."

_SYNCED = mount.c.root_mount_id.is_(None) & mount.c.connection_id.is_not(None)
"""Links are never synced; entries are with their root."""

_SCHEDULED = (
    sa.select(
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
        passed_over=PassedOverCounts(row.skipped_fires, row.missed_fires),
    )


MOUNT_SCHEDULES = ScheduleTable(mount, Family.MOUNT_SCHEDULE, _SCHEDULED, _read, _SYNCED)


async def mounts_placed(work: UnitOfWork, workspace_id: Id, mount_ids: Sequence[Id]) -> None:
    """Update schedules after items were trashed, archived or restored."""
    mine = mount.c.workspace_id == workspace_id
    await announce(work, MOUNT_SCHEDULES, mine & mount.c.id.in_(mount_ids))


async def mounts_closed(work: UnitOfWork, workspace_id: Id) -> None:
    """Stop the schedules of a deleted workspace."""
    await announce(work, MOUNT_SCHEDULES, mount.c.workspace_id == workspace_id)


@dataclass(frozen=True, slots=True)
class DueSync:
    """An open sync of a due time, and the request that starts it in Temporal."""

    job_id: Id
    workspace_id: Id
    request: StartRequest


async def fire_sync(work: UnitOfWork, mount_id: Id, due: datetime) -> DueSync | None:
    """The sync of a due time that has come, which the caller starts and waits for.

    None when there is nothing to wait for: the schedule is gone or paused, the sync has ended
    already, or another one is open, which then counts for the due time too.
    """
    schedule = await scheduled(work, MOUNT_SCHEDULES, mount_id)
    if schedule is None:
        return None
    await set_next_run(work, MOUNT_SCHEDULES, mount_id, schedule.next_after(work.now))
    if schedule.paused is not None:
        return None
    conditions = (mount.c.workspace_id == schedule.workspace_id, mount.c.id == mount_id)
    row = await work.first(sa.select(mount).where(*conditions).with_for_update(), of=MountRow)
    if row is None or row.created_by_user_id is None:
        return None
    job_id = due_run_id(schedule.schedule_id, due)
    if row.sync_job_id is None:
        given = {"mountId": str(mount_id), "place": None}
        workspace_id, user_id = schedule.workspace_id, row.created_by_user_id
        family = Family.MOUNT_SYNC
        if await record_job(work, workspace_id, user_id, family, job_id, mount_id, given):
            await work.execute(sa.update(mount).where(*conditions).values(sync_job_id=job_id))
            await stand_in_line(work, family, workspace_id, job_id, _request(mount_id))
    elif row.sync_job_id != job_id:
        return None
    job = await find_job(work, schedule.workspace_id, Family.MOUNT_SYNC, job_id)
    if job.status not in OPEN_JOB:
        return None
    return DueSync(job_id, schedule.workspace_id, _request(mount_id))


def _request(mount_id: Id) -> StartRequest:
    return start_request(mount_id, "Sync", "schedule")

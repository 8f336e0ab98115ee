"""The syncs of a schedule: one for each due time, in the name of who mounted the resource."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update

from models.core.base import Id
from models.core.lifecycle.commands import stand_in_line
from models.core.schedules.commands import scheduled, set_next_run
from models.core.schedules.timetables import due_run_id
from models.messages.jobs.commands import record_job, start_request
from models.messages.jobs.queries import find_job
from models.messages.jobs.rules import OPEN_JOB
from models.sources.mounts.rows import MountRow
from models.sources.mounts.schedules import MOUNT_SCHEDULES
from models.sources.mounts.tables import mount
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.outbox import StartRequest


@dataclass(frozen=True, slots=True)
class DueSync:
    """An open sync of a due time, and the request that starts it in Temporal."""

    job_id: Id
    workspace_id: Id
    request: StartRequest


async def fire(work: UnitOfWork, mount_id: Id, due: datetime) -> DueSync | None:
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
    row = await work.first(select(mount).where(*conditions).with_for_update(), of=MountRow)
    if row is None or row.created_by_user_id is None:
        return None
    job_id = due_run_id(schedule.schedule_id, due)
    if row.sync_job_id is None:
        given = {"mountId": str(mount_id), "place": None}
        workspace_id, user_id = schedule.workspace_id, row.created_by_user_id
        family = Family.MOUNT_SYNC
        if await record_job(work, workspace_id, user_id, family, job_id, mount_id, given):
            await work.execute(update(mount).where(*conditions).values(sync_job_id=job_id))
            await stand_in_line(work, family, workspace_id, job_id, _request(mount_id))
    elif row.sync_job_id != job_id:
        return None
    job = await find_job(work, schedule.workspace_id, Family.MOUNT_SYNC, job_id)
    if job.status not in OPEN_JOB:
        return None
    return DueSync(job_id, schedule.workspace_id, _request(mount_id))


def _request(mount_id: Id) -> StartRequest:
    return start_request(mount_id, "Sync", "schedule")

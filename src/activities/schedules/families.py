"""The families of schedules: where their rows are, and what a due time of each makes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from activities.contracts import CalledRun
from models.automation.automation_runs.scheduled_runs import fire as fire_automation
from models.automation.automations.schedules import AUTOMATION_SCHEDULES
from models.core.base import Id
from models.core.schedules.commands import ScheduleTable
from models.sources.data_source_runs.commands.scheduled_refreshes import fire as fire_refresh
from models.sources.data_sources.schedules import DATA_SOURCE_SCHEDULES
from models.sources.mounts.scheduled_syncs import fire as fire_sync
from models.sources.mounts.schedules import MOUNT_SCHEDULES
from runtime.database import UnitOfWork
from runtime.families import Family

Fire = Callable[[UnitOfWork, Id, datetime], Awaitable[CalledRun | None]]
"""Accepts the run of a due time of a subject, unless there is none to wait for; idempotent."""


@dataclass(frozen=True, slots=True)
class ScheduleFamily:
    """The facts the engine of schedules must know of a family; each registers one of these."""

    kind: ScheduleTable
    fire: Fire


async def _automation(work: UnitOfWork, automation_id: Id, due: datetime) -> CalledRun | None:
    run = await fire_automation(work, automation_id, due)
    if run is None:
        return None
    return CalledRun(str(run.run_id), str(run.workspace_id), run.request)


async def _data_source(work: UnitOfWork, data_source_id: Id, due: datetime) -> CalledRun | None:
    run = await fire_refresh(work, data_source_id, due)
    if run is None:
        return None
    family = Family.DATA_SOURCE_REFRESH
    workspace_id, request = str(run.workspace_id), dict(run.request)
    return CalledRun(str(run.run_id), workspace_id, request, family, in_line=True)


async def _mount(work: UnitOfWork, mount_id: Id, due: datetime) -> CalledRun | None:
    sync = await fire_sync(work, mount_id, due)
    if sync is None:
        return None
    workspace_id, request = str(sync.workspace_id), dict(sync.request)
    return CalledRun(str(sync.job_id), workspace_id, request, Family.MOUNT_SYNC, in_line=True)


SCHEDULES: Mapping[Family, ScheduleFamily] = {
    Family.AUTOMATION_SCHEDULE: ScheduleFamily(AUTOMATION_SCHEDULES, _automation),
    Family.DATA_SOURCE_SCHEDULE: ScheduleFamily(DATA_SOURCE_SCHEDULES, _data_source),
    Family.MOUNT_SCHEDULE: ScheduleFamily(MOUNT_SCHEDULES, _mount),
}


def subject_of(schedule_id: str) -> tuple[Family, Id]:
    """The family of a schedule and what it is of. Raises ValueError for an id of another form."""
    family, _, subject_id = schedule_id.partition("/")
    return Family(family), Id(subject_id)

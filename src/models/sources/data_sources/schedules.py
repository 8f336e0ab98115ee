"""The schedules of data sources: what our rows say they should be (interface.md#data-sources)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from models.content.items.joins import ITEM, live_item_of
from models.core.base import Id, JsonObject
from models.core.schedules.commands import ScheduleTable, announce
from models.core.schedules.timetables import DesiredSchedule, PassedOverCounts, title_of
from models.people.workspaces import live_workspace_of
from models.sources.data_sources.rules import Schedule
from models.sources.data_sources.tables import data_source
from runtime.database import UnitOfWork
from runtime.temporal.families import Family

DISABLED = "The data source is disabled."
SCHEDULE_DISABLED = "The schedule is disabled."
ARCHIVED = "The data source is archived."


_SCHEDULED = (
    sa.select(
        data_source.c.id,
        data_source.c.workspace_id,
        data_source.c.enabled,
        data_source.c.schedule,
        data_source.c.next_run_at,
        data_source.c.skipped_fires,
        data_source.c.missed_fires,
        ITEM.title.label("label"),
        ITEM.archived,
    )
    .join(*live_item_of(data_source))
    .join(*live_workspace_of(data_source))
    .where(data_source.c.schedule.is_not(None))
)
"""Data sources that should have a schedule: neither they nor their workspace in the trash."""


class _Row(Protocol):
    id: Id
    workspace_id: Id
    label: str
    enabled: bool
    archived: bool
    schedule: JsonObject
    next_run_at: datetime | None
    skipped_fires: int
    missed_fires: int


def _read(row: _Row) -> DesiredSchedule:
    schedule = Schedule.model_validate(row.schedule)
    return DesiredSchedule(
        family=Family.DATA_SOURCE_SCHEDULE,
        subject_id=row.id,
        workspace_id=row.workspace_id,
        title=title_of(row.label, "refresh"),
        timing=schedule.timing,
        paused=_paused(row, schedule),
        next_run_at=row.next_run_at,
        passed_over=PassedOverCounts(row.skipped_fires, row.missed_fires),
    )


def _paused(row: _Row, schedule: Schedule) -> str | None:
    if not row.enabled:
        return DISABLED
    if not schedule.enabled:
        return SCHEDULE_DISABLED
    return ARCHIVED if row.archived else None


DATA_SOURCE_SCHEDULES = ScheduleTable(
    data_source,
    Family.DATA_SOURCE_SCHEDULE,
    _SCHEDULED,
    _read,
    data_source.c.schedule.is_not(None),
)


async def data_sources_placed(
    work: UnitOfWork, workspace_id: Id, data_source_ids: Sequence[Id]
) -> None:
    """Update schedules after items were trashed, archived or restored."""
    mine = data_source.c.workspace_id == workspace_id
    await announce(work, DATA_SOURCE_SCHEDULES, mine & data_source.c.id.in_(data_source_ids))


async def data_sources_closed(work: UnitOfWork, workspace_id: Id) -> None:
    """Stop the schedules of a deleted workspace."""
    await announce(work, DATA_SOURCE_SCHEDULES, data_source.c.workspace_id == workspace_id)


async def data_source_renamed(
    work: UnitOfWork, workspace_id: Id, data_source_id: Id, _label: str
) -> None:
    """Let the schedule follow the new title of its item, which is the label."""
    await data_sources_placed(work, workspace_id, [data_source_id])

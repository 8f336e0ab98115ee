"""Reading data sources with their newest runs."""

from collections.abc import Sequence

from sqlalchemy import select

from models.content.items.queries import closed_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.credentials import hidden
from models.core.pagination import PageRequest
from models.core.schedules.clock_changes import schedule_notes
from models.core.schedules.shapes import PassedOver
from models.sources.data_source_overviews.shapes import DataSourceDetail, DataSourceList
from models.sources.data_source_runs.queries import latest_runs
from models.sources.data_sources.queries import (
    SOURCE,
    DataSourceRow,
    data_sources_of,
    find_data_source,
)
from models.sources.data_sources.rules.configs import Schedule
from runtime.database import UnitOfWork


async def get_data_source(
    work: UnitOfWork, workspace_id: Id, data_source_id: Id
) -> DataSourceDetail:
    """A data source. Raises `NotFoundError`."""
    return await detail(work, await find_data_source(work, workspace_id, data_source_id))


async def list_data_sources(work: UnitOfWork, actor: Actor, page: PageRequest) -> DataSourceList:
    """The data sources the actor sees, newest first."""
    statement = data_sources_of(actor.workspace_id).where(
        SOURCE.item_id.not_in(select(closed_items(actor).c.id))
    )
    shown = await page.descending(work, statement, SOURCE.created_at, SOURCE.id, of=DataSourceRow)
    details = await _details(work, actor.workspace_id, shown.items)
    return DataSourceList(data_sources=details, cursor=shown.cursor)


async def detail(work: UnitOfWork, row: DataSourceRow) -> DataSourceDetail:
    """A data source with its newest run and when it is refreshed next."""
    return (await _details(work, row.workspace_id, [row]))[0]


async def _details(
    work: UnitOfWork, workspace_id: Id, rows: Sequence[DataSourceRow]
) -> list[DataSourceDetail]:
    latest = await latest_runs(work, workspace_id, [row.id for row in rows])
    details = [DataSourceDetail.model_validate(row) for row in rows]
    for detail, row in zip(details, rows, strict=True):
        detail.config = hidden(row.config)
        if row.schedule is not None:
            skipped = row.skipped_fires + row.joined_fires
            detail.passed_over = PassedOver(skipped=skipped, missed=row.missed_fires)
            timetable = Schedule.model_validate(row.schedule).timing.timetable
            detail.schedule_notes = schedule_notes(timetable, work.now)
        run = latest.get(detail.id)
        if run is not None:
            detail.latest_run = run
            detail.latest_status = run.status
            detail.last_run_at = run.created_at
    return details

"""Data sources as they are shown: each with its newest run."""

from collections.abc import Sequence
from typing import Annotated

import sqlalchemy as sa
from pydantic import Field

from models.content.items.queries import closed_items
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject, Moment, Shape
from models.core.http_requests import hidden
from models.core.openapi import documented_as
from models.core.pagination import Listed, PageRequest
from models.core.schedules.timetables import PassedOver, schedule_notes
from models.sources.data_source_runs.queries import latest_runs
from models.sources.data_source_runs.rules import DataSourceRunStatus
from models.sources.data_source_runs.shapes import DataSourceRunDetail
from models.sources.data_sources import queries
from models.sources.data_sources.rules import DataSourceKind, RemovedRows, Schedule, WriteMode
from runtime.database import UnitOfWork


class DataSourceDetail(Shape):
    """A data source with its newest run.

    `scheduleNotes` say what may be unexpected of its schedule in the year to come, as at changes of
    the clock.
    """

    id: Id
    workspace_id: Id
    item_id: Id
    key: str
    label: str
    kind: DataSourceKind
    config: JsonObject
    fields: list[Annotated[JsonObject, documented_as("FieldMapping")]]
    target_database_id: Id | None
    key_fields: list[str]
    write_mode: WriteMode
    removed_rows: RemovedRows
    removal_guard_percent: int
    schedule: Annotated[JsonObject, documented_as("Schedule")] | None
    enabled: bool
    latest_run: DataSourceRunDetail | None = None
    latest_status: DataSourceRunStatus | None = None
    last_run_at: Moment | None = None
    next_run_at: Moment | None = None
    passed_over: PassedOver | None = None
    schedule_notes: Annotated[list[str], Field(default_factory=list)]
    created_at: Moment
    updated_at: Moment


class DataSourceList(Listed):
    data_sources: list[DataSourceDetail]


async def get_data_source(
    work: UnitOfWork, workspace_id: Id, data_source_id: Id
) -> DataSourceDetail:
    """A data source. Raises `NotFoundError`."""
    return await detail(work, await queries.find_data_source(work, workspace_id, data_source_id))


async def list_data_sources(work: UnitOfWork, actor: Actor, page: PageRequest) -> DataSourceList:
    """The data sources the actor sees, newest first."""
    statement = queries.data_sources_of(actor.workspace_id).where(
        queries.SOURCE.item_id.not_in(sa.select(closed_items(actor).c.id))
    )
    shown = await page.descending(
        work, statement, queries.SOURCE.created_at, queries.SOURCE.id, of=queries.DataSourceRow
    )
    details = await _details(work, actor.workspace_id, shown.items)
    return DataSourceList(data_sources=details, cursor=shown.cursor)


async def detail(work: UnitOfWork, row: queries.DataSourceRow) -> DataSourceDetail:
    """A data source with its newest run and when it is refreshed next."""
    return (await _details(work, row.workspace_id, [row]))[0]


async def _details(
    work: UnitOfWork, workspace_id: Id, rows: Sequence[queries.DataSourceRow]
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

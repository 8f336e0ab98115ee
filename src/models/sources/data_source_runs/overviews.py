"""Data sources with their newest runs, and a run by its id alone, as its page follows it."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

import sqlalchemy as sa
from pydantic import Field

from models.content.files.queries import find_file
from models.content.items.queries import PlacementOf, closed_items
from models.core.access.rules import Actor, Level, Placement
from models.core.base import Id, JsonObject, Moment, Shape
from models.core.http_requests import hidden
from models.core.lifecycle.lost_workers import waiting_for_worker_since
from models.core.openapi import documented_as
from models.core.pagination import Listed, PageRequest
from models.core.schedules.timetables import PassedOver, schedule_notes
from models.data.fields.queries import database_label
from models.messages.jobs.rules import JobStatus
from models.sources.data_source_runs import shapes
from models.sources.data_source_runs.documentation import ERROR_NOTES
from models.sources.data_source_runs.queries import latest_runs, run_in_workspace, shown_of
from models.sources.data_source_runs.rules import OPEN_RUN
from models.sources.data_source_runs.tables import SourceRunRow, data_source_run
from models.sources.data_sources import queries
from models.sources.data_sources.rules import DataSourceKind, RemovedRows, Schedule, WriteMode
from models.sources.outbound_limits.queries import waits_of
from models.sources.tabular.rules.options import ErrorKind
from runtime.database import UnitOfWork, columns_of

_run = data_source_run.c

_visible_refresh = PlacementOf(
    queries.placed_data_sources()
    .join(data_source_run, _run.data_source_id == queries.SOURCE.id)
    .where(
        _run.id == sa.bindparam("id", type_=sa.Uuid),
        _run.workspace_id == queries.SOURCE.workspace_id,
    )
)


async def visible(
    work: UnitOfWork, workspace_ids: Sequence[Id], run_id: Id, user_id: Id
) -> Placement | None:
    """The placement of a run: its data source's; an import is for its maker and for managers."""
    row = await work.first(
        sa.select(_run.workspace_id, _run.data_source_id, _run.actor_user_id).where(
            _run.id == run_id, _run.workspace_id == sa.any_(sa.literal(list(workspace_ids)))
        )
    )
    if row is None:
        return None
    if row.data_source_id is not None:
        return await _visible_refresh(work, workspace_ids, run_id, user_id)
    own = row.actor_user_id == user_id
    granted = Level.VIEW if own else Level.NONE
    return Placement(workspace_id=row.workspace_id, restricted=True, granted=granted)


async def overview(work: UnitOfWork, actor: Actor, run_id: Id) -> shapes.SourceRunOverview:
    """The content of a run's page when it is opened. Raises `NotFoundError`."""
    run = await run_in_workspace(work, actor.workspace_id, run_id)
    database_id = None if run.result is None else run.result.get("databaseId")
    return shapes.SourceRunOverview(
        id=run.id,
        workspace_id=run.workspace_id,
        title=await run_title(work, run),
        trigger=run.trigger,
        data_source_id=run.data_source_id,
        database_id=run.database_id or database_id,
        created_at=run.created_at,
        run=await _state(work, run),
        metadata={},
    )


async def state(work: UnitOfWork, workspace_id: Id, run_id: Id) -> shapes.SourceRunState:
    """The progress of a run. Raises `NotFoundError`."""
    columns = [_run[name] for name in _STATE]
    statement = sa.select(*columns).where(_run.workspace_id == workspace_id, _run.id == run_id)
    row = await work.one(statement, "run", of=SourceRunRow)
    return await _state(work, row)


_STATE = (
    *("id", "workspace_id", "status", "progress", "stats", "result", "error", "error_kind"),
    *("created_at", "started_at", "completed_at", "reverted_at"),
)


async def _state(work: UnitOfWork, row: SourceRunRow) -> shapes.SourceRunState:
    waits = row.status in OPEN_RUN
    since = await waiting_for_worker_since(work, row.created_at) if waits else None
    outbound_waits = await waits_of(work, row.workspace_id, [row.id] if waits else [])
    waits_and_advice = {
        "waiting_for": outbound_waits.get(row.id),
        "waiting_for_worker_since": since,
        "skipped_cells": row.progress.get("lost", 0),
        "advice": None if row.error_kind is None else ERROR_NOTES[ErrorKind(row.error_kind)],
    }
    return shapes.SourceRunState.model_validate(
        {**columns_of(row), **shown_of(row), **waits_and_advice}
    )


_BYTES = 200
"""The bytes that Temporal takes as a summary (ecosystem 2.3)."""


async def run_title(work: UnitOfWork, run: SourceRunRow) -> str:
    """Such as `Import · cars.csv → Cars`, or `Refresh · Price list → Prices`."""
    verb = "Import" if run.data_source_id is None else "Refresh"
    source = await _source(work, run)
    target = await _target(work, run)
    room = (_BYTES - len(f"{verb} ·  → ".encode())) // 2
    return f"{verb} · {_cut(source, room)} → {_cut(target, room)}"


def _cut(text: str, room: int) -> str:
    return " ".join(text.split()).encode()[:room].decode(errors="ignore")


async def _source(work: UnitOfWork, run: SourceRunRow) -> str:
    """The label of the data source; of an import, the name of what is read, or its host."""
    if run.data_source_id is not None:
        label = await queries.data_source_label(work, run.workspace_id, run.data_source_id)
        return label or "a data source"
    config = run.plan["config"]
    if "fileId" in config:
        found = await find_file(work, run.workspace_id, Id(config["fileId"]))
        return "a file" if found is None else found.name
    if "url" in config:
        # Paths and queries may hold what opens them.
        return urlsplit(config["url"]).hostname or "a URL"
    if "resource" in config:
        return str(config["resource"]["name"])
    return f"{config['format']} of the request"


async def _target(work: UnitOfWork, run: SourceRunRow) -> str:
    if run.database_id is None:
        return f"{run.plan['label']} (new)"
    return await database_label(work, run.workspace_id, run.database_id) or "a database"


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
    latest_run: shapes.DataSourceRunDetail | None = None
    latest_status: JobStatus | None = None
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

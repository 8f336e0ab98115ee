"""Data sources on the wire (decisions C10, C17)."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, JsonObject, Moment, Nullable, Shape
from models.core.documented import documented_as
from models.core.schedules.shapes import PassedOver
from models.sources.data_source_runs.rules import DataSourceRunStatus
from models.sources.data_source_runs.shapes import DataSourceRunDetail
from models.sources.data_sources.rules.configs import DataSourceKind, RemovedRows, WriteMode


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


class DataSourceList(Shape):
    data_sources: list[DataSourceDetail]
    cursor: Nullable[str]

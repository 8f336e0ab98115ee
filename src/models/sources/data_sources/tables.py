"""The table of data sources, its rows in a bundle, and their schedules (interface.md#data-sources).

In a bundle a data source is switched off, and without secrets.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.content.items.joins import ITEM, live_item_of
from models.core.base import Id, JsonObject
from models.core.bundles import USER, BundleKind, Row, Stage, shape_problem
from models.core.http_requests import hidden
from models.core.schedules.commands import ScheduleTable, announce
from models.core.schedules.timetables import DesiredSchedule, PassedOverCounts, title_of
from models.people.workspaces import live_workspace_of
from models.sources.data_sources.rules import CONFIGS, DataSourceKind, Schedule
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of
from runtime.temporal.workflow_kinds import WorkflowKind


class DataSource(SQLModel, table=True):
    """A data source; its label is the title of its item.

    `fields` maps its columns to the fields of the target database. Its schedule refreshes it in
    the name of who created it; due times that met another refresh are `joined_fires`.
    """

    __tablename__ = "data_source"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.UniqueConstraint("workspace_id", "key"),
        same_workspace("item_id", "item.id"),
        same_workspace("target_database_id", "database.id"),
        one_of("kind", DataSourceKind),
        sa.Index("ix_data_source_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        sa.Index(
            "ix_data_source_workspace_id_target_database_id", "workspace_id", "target_database_id"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id = Field(unique=True)
    key: str
    kind: str
    config: dict[str, Any] = Field(sa_type=JSONB)
    fields: list[dict[str, Any]] = Field(sa_type=JSONB)
    target_database_id: Id | None = None
    key_fields: list[str] = Field(sa_type=JSONB)
    write_mode: str
    removed_rows: str
    removal_guard_percent: int
    schedule: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    next_run_at: datetime | None = Field(default=None, sa_type=Timestamp)
    skipped_fires: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    missed_fires: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    joined_fires: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    last_joined_at: datetime | None = Field(default=None, sa_type=Timestamp)
    enabled: bool
    created_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


data_source = table_of(DataSource)

_SCHEDULE = "follows from the schedule"


def _rows(workspace_id: Id) -> sa.Select[Any]:
    return (
        sa.select(data_source)
        .join(*live_item_of(data_source))
        .where(data_source.c.workspace_id == workspace_id)
    )


def _shown(row: Row) -> Row:
    return {**row, "config": hidden(row["config"])}


def _problem(row: Row) -> str | None:
    if row["kind"] not in set(DataSourceKind):
        return f"nothing is known of a data source of the kind {row['kind'][:50]}"
    shape = TypeAdapter(CONFIGS[DataSourceKind(row["kind"])])
    return shape_problem(shape, row["config"], "config")


DATA_SOURCES = BundleKind(
    name="data_source",
    stage=Stage.AUTOMATIONS,
    file="data_sources.ndjson",
    table=data_source,
    rows=_rows,
    references={"item_id": "item", "target_database_id": "database", "created_by_user_id": USER},
    contents=("config", "fields"),
    lists=("fields", "key_fields"),
    left_out={
        "next_run_at": _SCHEDULE,
        "skipped_fires": _SCHEDULE,
        "missed_fires": _SCHEDULE,
        "joined_fires": _SCHEDULE,
        "last_joined_at": _SCHEDULE,
    },
    # The original still fetches its rows; secrets have to be entered first.
    imported_as={"enabled": False},
    unique_key=True,
    redact=_shown,
    check=_problem,
)


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
        workflow_kind=WorkflowKind.DATA_SOURCE_SCHEDULE,
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
    WorkflowKind.DATA_SOURCE_SCHEDULE,
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

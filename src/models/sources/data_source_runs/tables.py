"""The tables of runs, of what they stage and of their sources, and runs as durable work."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA, JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable, indexes_of_work
from models.core.purging import MAX_ROWS, Retention
from models.messages.jobs.rules import JobStatus
from models.sources.data_source_runs import rules
from runtime.database import UnitOfWork
from runtime.postgresql import schema
from runtime.rehearsal import replace_rows
from runtime.temporal.workflow_kinds import WorkflowKind


class DataSourceRun(SQLModel, table=True):
    """One run; an import of a spreadsheet is a run without a data source.

    `plan` is what it does: where rows come from, how they are read, which fields they fill.
    `progress` is how far it came. `database_id` is the target, which an import may still create.
    `client_mutation_id` makes a repeated import one. `actor_user_id` is in whose name it writes,
    `chain` are the runs of automations that led to it, oldest first. `retry_of_run_id` is the run
    that it tries again. `note` says why it was due at another time than its schedule names. Ids
    have no order.
    """

    __tablename__ = "data_source_run"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        schema.same_workspace("data_source_id", "data_source.id"),
        schema.one_of("status", JobStatus),
        schema.one_of("trigger", rules.RunTrigger),
        sa.Index(
            "ix_data_source_run_workspace_id_data_source_id_created_at",
            "workspace_id",
            "data_source_id",
            "created_at",
        ),
        sa.Index("ix_data_source_run_completed_at", "completed_at"),
        *indexes_of_work("data_source_run", rules.OPEN_RUN),
        schema.partial_index(
            "uq_data_source_run_client_mutation_id",
            "workspace_id",
            "client_mutation_id",
            where="status NOT IN ('failed', 'cancelled')",
            unique=True,
        ),
        # Runs of one data source never meet: a second one is the one that is open.
        sa.Index(
            "uq_data_source_run_open_of_source",
            "data_source_id",
            unique=True,
            postgresql_where=sa.text(f"status IN ({schema.listed(rules.OPEN_RUN)})"),
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    data_source_id: Id | None = None
    database_id: Id | None = None
    status: str
    trigger: str
    actor_user_id: Id | None = None
    client_mutation_id: str | None = None
    retry_of_run_id: Id | None = None
    chain: list[Id] = Field(
        sa_type=sa.ARRAY(sa.Uuid), sa_column_kwargs={"server_default": sa.text("'{}'")}
    )
    plan: dict[str, Any] = Field(sa_type=JSONB)
    progress: dict[str, Any] = Field(sa_type=JSONB)
    stats: dict[str, Any] = Field(sa_type=JSONB)
    result: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    note: str | None = None
    error: str | None = None
    error_kind: str | None = None
    created_at: datetime = Field(sa_type=schema.Timestamp)
    dispatched_at: datetime | None = Field(default=None, sa_type=schema.Timestamp)
    started_at: datetime | None = Field(default=None, sa_type=schema.Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=schema.Timestamp)
    reverted_at: datetime | None = Field(default=None, sa_type=schema.Timestamp)


class StagedRow(SQLModel, table=True):
    """A row of a run before it is applied; PostgreSQL empties the table when it crashes.

    `position` is its place among the rows of the table, `row_number` that in its file.
    `identity` tells rows apart, `digest` tells whether one changed. `record_id` is the record that
    has it already, and `change` what applying will do there; without both it is a new record.
    """

    __tablename__ = "staged_row"
    __table_args__ = (
        # Room on its page for what the comparison writes into each row.
        {"prefixes": ["UNLOGGED"], "postgresql_with": {"fillfactor": 50}},
    )

    run_id: Id = Field(primary_key=True)
    position: int = Field(primary_key=True, sa_type=sa.BigInteger)
    row_number: int | None = Field(default=None, sa_type=sa.BigInteger)
    identity: bytes = Field(sa_type=BYTEA)
    digest: bytes = Field(sa_type=BYTEA)
    title: str
    data: dict[str, Any] = Field(sa_type=JSONB)
    record_id: Id | None = None
    change: str | None = None


class RunRejection(SQLModel, table=True):
    """A cell that a run left blank, or a row that it skipped, and why.

    `place` is its place in the run. A row has no column, and a field only where that
    is the reason.
    """

    __tablename__ = "data_source_run_rejection"
    __table_args__ = (
        # The name that the convention gives would be cut.
        sa.ForeignKeyConstraint(
            ["workspace_id", "run_id"],
            ["data_source_run.workspace_id", "data_source_run.id"],
            name="fk_data_source_run_rejection_workspace_id_data_source_run",
            ondelete="CASCADE",
        ),
    )

    workspace_id: Id = Field(primary_key=True)
    run_id: Id = Field(primary_key=True)
    place: int = Field(primary_key=True)
    row_number: int = Field(sa_type=sa.BigInteger)
    column: str | None = None
    field_key: str | None = None
    value: str | None = None
    reason: str


class SourceRow(SQLModel, table=True):
    """The record that a row of a source became, by what identifies the row.

    `source_id` is the data source, the imported resource, or the run that imported without one;
    `run_id` the last run that wrote the record. A row that is gone from the source has `removed`.
    Of an imported resource it has `position`, `title` and `data`, too, as the source said them
    last: where the record is otherwise, people changed it. It refers to its record without a
    constraint, as the history does.
    """

    __tablename__ = "source_row"
    __table_args__ = (
        sa.Index("ix_source_row_workspace_id_record_id", "workspace_id", "record_id"),
        # A refresh changes no indexed column: with room on its page a row is written in place.
        {
            "postgresql_with": {"fillfactor": 50},
            "info": {schema.BELONGS_TO: {"record": ("workspace_id", "record_id")}},
        },
    )

    workspace_id: Id = Field(primary_key=True)
    source_id: Id = Field(primary_key=True)
    identity: bytes = Field(sa_type=BYTEA, primary_key=True)
    record_id: Id
    digest: bytes = Field(sa_type=BYTEA)
    run_id: Id
    removed: bool = False
    position: int | None = Field(default=None, sa_type=sa.BigInteger)
    title: str | None = None
    data: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))


class SourceColumns(SQLModel, table=True):
    """The columns that a source was read with, and the fields of `database_id` that they filled.

    `source_id` is that of `SourceRow`. `columns` are `KnownColumn`s, `headers` the names of all
    columns that were ever there. `config` is the digest of the config they were read with,
    `json_path` where the rows were.
    """

    __tablename__ = "source_columns"
    __table_args__ = (
        {
            "info": {
                schema.BELONGS_TO: {
                    "data_source": ("workspace_id", "source_id"),
                    "imported_resource": ("workspace_id", "source_id"),
                }
            }
        },
    )

    workspace_id: Id = Field(primary_key=True)
    source_id: Id = Field(primary_key=True)
    database_id: Id
    columns: list[dict[str, Any]] = Field(sa_type=JSONB)
    headers: list[str] = Field(sa_type=JSONB)
    config: str
    json_path: str | None = None


data_source_run = schema.table_of(DataSourceRun)
staged_row = schema.table_of(StagedRow)
run_rejection = schema.table_of(RunRejection)
source_row = schema.table_of(SourceRow)
source_columns = schema.table_of(SourceColumns)


class SourceRunRow(Protocol):
    """A run: `plan` is what it does, `progress` how far it came, `stats` what it counted."""

    id: Id
    workspace_id: Id
    data_source_id: Id | None
    database_id: Id | None
    status: str
    trigger: str
    actor_user_id: Id | None
    chain: list[Id]
    plan: dict[str, Any]
    progress: dict[str, Any]
    stats: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None
    error_kind: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    reverted_at: datetime | None


def source_id_of(run: SourceRunRow) -> Id:
    """The source of a run's rows: its data source, what an import renews, or the run itself."""
    renewed = run.plan.get("sourceId")
    return run.data_source_id or (run.id if renewed is None else Id(renewed))


DATA_SOURCE_RUNS = WorkTable(
    data_source_run,
    rules.RUN_LIFECYCLE,
    workflow_kind=sa.case(
        (data_source_run.c.data_source_id.is_(None), WorkflowKind.SPREADSHEET_IMPORT.value),
        else_=WorkflowKind.DATA_SOURCE_REFRESH.value,
    ),
)

_run = data_source_run.c


async def recorded_run(work: UnitOfWork, run_id: Id) -> SourceRunRow | None:
    """A run as it is."""
    return await work.first(sa.select(data_source_run).where(_run.id == run_id), of=SourceRunRow)


async def reopen_source_run(work: UnitOfWork, run: SourceRunRow, plan: dict[str, Any]) -> None:
    """Open a run that has done nothing yet; the one of its source that is open now is closed."""
    if run.data_source_id is not None:
        others = (_run.data_source_id == run.data_source_id, _run.id != run.id)
        cancelled = JobStatus.CANCELLED.value
        await replace_rows(
            work,
            data_source_run,
            sa.and_(*others, _run.status.in_(rules.OPEN_RUN)),
            status=cancelled,
        )
    await replace_rows(
        work,
        data_source_run,
        _run.id == run.id,
        status=JobStatus.RUNNING.value,
        plan=plan,
        progress={},
        stats={},
        result=None,
        error=None,
        error_kind=None,
        completed_at=None,
    )


purge_data_source_runs = Retention(
    data_source_run, data_source_run.c.completed_at, conditions=(~DATA_SOURCE_RUNS.is_open,)
)
"""Runs that have ended; the records that they wrote stay."""


async def purge_rejections(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Remove what was left out by runs that cannot be reverted any more.

    Returns the number of removed rows, at most `limit`; call it until that is 0.
    """
    rejection, run = run_rejection.c, data_source_run.c
    key = (rejection.workspace_id, rejection.run_id, rejection.place)
    old = (
        sa.select(*key)
        .join(
            data_source_run,
            sa.and_(run.workspace_id == rejection.workspace_id, run.id == rejection.run_id),
        )
        .where(run.completed_at < work.now - rules.REVERTIBLE)
        .limit(limit)
    )
    removed = await work.execute(sa.delete(run_rejection).where(sa.tuple_(*key).in_(old)))
    return removed.rowcount


async def open_runs(work: UnitOfWork, run_ids: Collection[Id]) -> set[Id]:
    """The runs among these that have not ended."""
    found = sa.select(_run.id).where(_run.id.in_(run_ids), _run.status.in_(rules.OPEN_RUN))
    return {row.id for row in await work.rows(found)}

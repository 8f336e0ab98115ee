"""Runs as durable work: the types of their rows, their lifecycle, reopening and purge."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.core.purging import MAX_ROWS, Retention
from models.messages.jobs.rules import JobStatus
from models.sources.data_source_runs import rules
from models.sources.data_source_runs.tables import (
    data_source_run,
    run_rejection,
)
from runtime.database import UnitOfWork
from runtime.rehearsal import replace_rows
from runtime.temporal.families import Family


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
    family=sa.case(
        (data_source_run.c.data_source_id.is_(None), Family.SPREADSHEET_IMPORT.value),
        else_=Family.DATA_SOURCE_REFRESH.value,
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

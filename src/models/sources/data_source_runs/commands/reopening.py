"""A run that has ended, put back to when it was accepted, in a transaction that is rolled back."""

from typing import Any

from sqlalchemy import and_, select

from models.core.base import Id
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import OPEN_RUN, DataSourceRunStatus
from models.sources.data_source_runs.tables import data_source_run
from runtime.database import UnitOfWork
from runtime.rehearsal import replace_rows

_run = data_source_run.c


async def recorded_run(work: UnitOfWork, run_id: Id) -> SourceRunRow | None:
    """A run as it is."""
    return await work.first(select(data_source_run).where(_run.id == run_id), of=SourceRunRow)


async def reopen_source_run(work: UnitOfWork, run: SourceRunRow, plan: dict[str, Any]) -> None:
    """Open a run that has done nothing yet; the one of its source that is open now is closed."""
    if run.data_source_id is not None:
        others = (_run.data_source_id == run.data_source_id, _run.id != run.id)
        cancelled = DataSourceRunStatus.CANCELLED.value
        await replace_rows(
            work, data_source_run, and_(*others, _run.status.in_(OPEN_RUN)), status=cancelled
        )
    await replace_rows(
        work,
        data_source_run,
        _run.id == run.id,
        status=DataSourceRunStatus.RUNNING.value,
        plan=plan,
        progress={},
        stats={},
        result=None,
        error=None,
        error_kind=None,
        completed_at=None,
    )

"""The refreshes of a schedule: one for each due time, in the name of who made the data source.

The id of a run follows from its schedule and its due time, so that no due time has two runs.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from models.core.access.placement import level_on
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.core.schedules.clock_changes import fire_note
from models.core.schedules.commands import scheduled, set_next_run
from models.core.schedules.timetables import due_run_id
from models.data.fields.queries import require_edit
from models.sources.data_source_runs.commands.acceptance import (
    NO_TARGET,
    refresh_row,
    start_request,
    start_run,
)
from models.sources.data_source_runs.commands.endings import fail_run
from models.sources.data_source_runs.commands.execution import run_actor
from models.sources.data_source_runs.commands.staging import find_run
from models.sources.data_source_runs.commands.targets import DENIED
from models.sources.data_source_runs.lifecycle import DATA_SOURCE_RUNS
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import OPEN_RUN, RunTrigger
from models.sources.data_source_runs.tables import data_source_run
from models.sources.data_sources.commands import count_joined
from models.sources.data_sources.queries import find_data_source, visible
from models.sources.data_sources.schedules import DATA_SOURCE_SCHEDULES
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, PlatformError, ValidationError
from runtime.outbox import StartRequest


@dataclass(frozen=True, slots=True)
class DueRefresh:
    """An open run of a due time, and the request that starts it in Temporal."""

    run_id: Id
    workspace_id: Id
    request: StartRequest


async def fire(work: UnitOfWork, data_source_id: Id, due: datetime) -> DueRefresh | None:
    """The run of a due time that has come, which the caller starts and waits for.

    None when there is nothing to wait for: the schedule is gone or paused, the run has ended
    already, or another one is open, which then counts for the due time too. A run whose person may
    not refresh any more is recorded as failed.
    """
    schedule = await scheduled(work, DATA_SOURCE_SCHEDULES, data_source_id)
    if schedule is None:
        return None
    await set_next_run(work, DATA_SOURCE_SCHEDULES, data_source_id, schedule.next_after(work.now))
    if schedule.paused is not None:
        return None
    source = await find_data_source(work, schedule.workspace_id, data_source_id)
    run_id = due_run_id(schedule.schedule_id, due)
    row = refresh_row(source, run_id, RunTrigger.SCHEDULE, source.created_by_user_id)
    row["note"] = fire_note(schedule.timing.timetable, due)
    if await lifecycle.accept(work, DATA_SOURCE_RUNS, row):
        problem = await _refusal(work, await find_run(work, run_id))
        if problem is not None:
            await fail_run(work, run_id, problem)
        else:
            await start_run(work, await find_run(work, run_id), child=True)
    status = await work.scalar(
        select(data_source_run.c.status).where(data_source_run.c.id == run_id)
    )
    if status is None:
        await count_joined(work, data_source_id, due)
    if status not in OPEN_RUN:
        return None
    request = await start_request(work, await find_run(work, run_id))
    return DueRefresh(run_id, schedule.workspace_id, request)


async def _refusal(work: UnitOfWork, run: SourceRunRow) -> SourceProblem | None:
    """The reason why the person a schedule acts for may not refresh; None for one who may."""
    try:
        await _check(work, run, await run_actor(work, run))
    except PlatformError as error:
        return SourceProblem(
            ErrorKind.WRITE,
            f"The schedule refreshes in the name of who created the data source. {error.message}"
            " Somebody who may can duplicate the data source, to refresh it in their own name.",
        )
    return None


async def _check(work: UnitOfWork, run: SourceRunRow, actor: Actor) -> None:
    assert run.data_source_id is not None, "it is a refresh"
    placed = await visible(work, [run.workspace_id], run.data_source_id, actor.user_id)
    may_edit = placed is not None and level_on(placed, actor.role) >= Level.EDIT
    if Scope.DATA_SOURCES_WRITE not in actor.scopes or not may_edit:
        raise DeniedError("That person has no edit access to the data source any more.")
    if run.database_id is None:
        raise ValidationError(NO_TARGET)
    await require_edit(work, actor, run.database_id, DENIED)

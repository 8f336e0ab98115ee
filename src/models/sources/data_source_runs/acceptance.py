"""Accepting, retrying and cancelling runs, asked for or due by a schedule."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from models.core.access.rules import Actor, Level, Scope, level_on
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.core.lifecycle.commands import require_place
from models.core.schedules.commands import scheduled, set_next_run
from models.core.schedules.timetables import due_run_id, fire_note
from models.data.fields.queries import require_edit
from models.messages.jobs.rules import JobStatus
from models.sources.data_source_runs import endings, rules
from models.sources.data_source_runs.execution import run_actor
from models.sources.data_source_runs.overviews import run_title
from models.sources.data_source_runs.queries import get_import, get_run, run_in_workspace
from models.sources.data_source_runs.shapes import DataSourceRunDetail, SpreadsheetImportDetail
from models.sources.data_source_runs.staging import find_run
from models.sources.data_source_runs.tables import DATA_SOURCE_RUNS, SourceRunRow, data_source_run
from models.sources.data_source_runs.targets import DENIED
from models.sources.data_sources.commands import count_joined
from models.sources.data_sources.queries import DataSourceRow, find_data_source, visible
from models.sources.data_sources.tables import DATA_SOURCE_SCHEDULES
from models.sources.outbound_limits.turns import leave_lines
from models.sources.tabular.rules.options import ErrorKind, SourceProblem
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, PlatformError, ValidationError
from runtime.temporal.outbox import AWAITED, StartRequest
from runtime.temporal.workflow_kinds import WorkflowKind

DISABLED = "The data source is disabled. Enable it first."
NO_TARGET = "The data source has no target database. Set targetDatabaseId."


async def accept_refresh(
    work: UnitOfWork,
    actor: Actor,
    data_source_id: Id,
    run_id: Id,
    *,
    trigger: rules.RunTrigger = rules.RunTrigger.MANUAL,
    force: bool = False,
    started_by_caller: bool = False,
    retry_of: Id | None = None,
) -> DataSourceRunDetail:
    """Accept a refresh; while one is open, that one is the answer.

    One that is `started_by_caller` becomes a child of the execution that asks for it.

    Raises `NotFoundError`, `ValidationError` for a disabled data source and for one whose target is
    gone, `DeniedError` without edit access to the target.
    """
    source = await find_data_source(work, actor.workspace_id, data_source_id)
    if not source.enabled:
        raise ValidationError(DISABLED)
    if source.target_database_id is None:
        raise ValidationError(NO_TARGET)
    denied = "You need edit access to the target database."
    await require_edit(work, actor, source.target_database_id, denied)
    # The platform acts for the creator of the data source.
    row = refresh_row(source, run_id, trigger, actor.person or source.created_by_user_id)
    row["chain"] = list(actor.principal.run_chain)
    row["plan"]["force"] = force
    row["retry_of_run_id"] = retry_of
    if not await lifecycle.accept(work, DATA_SOURCE_RUNS, row):
        return await _open_run(work, actor.workspace_id, data_source_id, run_id)
    if not started_by_caller:
        of_sources = data_source_run.c.data_source_id.is_not(None)
        await require_place(
            work, actor, DATA_SOURCE_RUNS, WorkflowKind.DATA_SOURCE_REFRESH, of_sources
        )
    await start_run(work, await find_run(work, run_id), child=started_by_caller)
    return await get_run(work, actor.workspace_id, data_source_id, run_id)


async def retry_run(
    work: UnitOfWork, actor: Actor, data_source_id: Id, run_id: Id, retry_id: Id
) -> DataSourceRunDetail:
    """Accept a run that tries a failed or cancelled one again, with the configuration of today.

    Raises what `accept_refresh` raises, and `ConflictError` for a run that ended otherwise or is
    open, and while another one is open.
    """
    earlier = await get_run(work, actor.workspace_id, data_source_id, run_id)
    if earlier.status not in rules.RETRIED:
        raise ConflictError(
            f"Only failed or cancelled runs can be retried; this one is {earlier.status}."
        )
    force = (await find_run(work, run_id)).plan["force"]
    retry, kind = (data_source_id, retry_id), rules.RunTrigger.RETRY
    made = await accept_refresh(work, actor, *retry, trigger=kind, force=force, retry_of=run_id)
    if made.id != retry_id:
        raise ConflictError("Another run of the data source is open. Wait until it ends.")
    return made


def refresh_row(
    source: DataSourceRow, run_id: Id, trigger: rules.RunTrigger, user_id: Id | None
) -> JsonObject:
    """The row of a refresh that is about to be accepted, in the name of a user."""
    return {
        "id": run_id,
        "workspace_id": source.workspace_id,
        "data_source_id": source.id,
        "database_id": source.target_database_id,
        "trigger": trigger.value,
        "actor_user_id": user_id,
        "plan": plan_of(source),
        "progress": {},
        "stats": {},
    }


def plan_of(source: DataSourceRow) -> JsonObject:
    """The plan of a run of this data source, as it is configured now."""
    return {
        "kind": source.kind,
        "config": source.config,
        "fields": source.fields,
        "keyFields": source.key_fields,
        "writeMode": source.write_mode,
        "removedRows": source.removed_rows,
        "removalGuardPercent": source.removal_guard_percent,
        "force": False,
    }


async def _open_run(
    work: UnitOfWork, workspace_id: Id, data_source_id: Id, run_id: Id
) -> DataSourceRunDetail:
    """The run accepted before under this id, else the one that is open."""
    open_id = await work.scalar(
        sa.select(data_source_run.c.id).where(
            data_source_run.c.workspace_id == workspace_id,
            data_source_run.c.data_source_id == data_source_id,
            data_source_run.c.status.in_([status.value for status in rules.OPEN_RUN]),
        )
    )
    return await get_run(work, workspace_id, data_source_id, open_id or run_id)


async def start_run(
    work: UnitOfWork, run: SourceRunRow, restarts: int = 0, *, child: bool = False
) -> None:
    """Have the execution of an accepted run started, or that of a `child` by its caller."""
    workflow_kind, request = (
        rules.workflow_kind_of(run.data_source_id),
        await start_request(work, run),
    )
    if child:
        await lifecycle.stand_in_line(work, workflow_kind, run.workspace_id, run.id, request)
    else:
        await lifecycle.start(work, workflow_kind, run.workspace_id, run.id, request, restarts)


async def start_request(work: UnitOfWork, run: SourceRunRow) -> StartRequest:
    """The facts of a run that Temporal gets at its start, and operators see.

    An import is found by the database it fills, if there is one already.
    """
    return {
        "summary": await run_title(work, run),
        "resourceId": str(run.data_source_id or run.database_id or run.id),
        "source": run.trigger,
        "weight": 1 if run.trigger == rules.RunTrigger.SCHEDULE else AWAITED,
    }


async def cancel_run(
    work: UnitOfWork, actor: Actor, data_source_id: Id, run_id: Id
) -> DataSourceRunDetail:
    """Make an open run cancelled for ever; a finished one is returned unchanged.

    Raises `NotFoundError`.
    """
    await get_run(work, actor.workspace_id, data_source_id, run_id)
    await _cancel(work, actor, run_id)
    return await get_run(work, actor.workspace_id, data_source_id, run_id)


async def cancel_import(work: UnitOfWork, actor: Actor, import_id: Id) -> SpreadsheetImportDetail:
    """Make an open import cancelled for ever; a finished one is returned unchanged.

    Raises `NotFoundError`.
    """
    await get_import(work, actor, import_id)
    await _cancel(work, actor, import_id)
    return await get_import(work, actor, import_id)


async def _cancel(work: UnitOfWork, actor: Actor, run_id: Id) -> None:
    """Rows are applied in one transaction, so a cancelled run has written none."""
    run = await run_in_workspace(work, actor.workspace_id, run_id)
    end = endings.RunEnd(JobStatus.CANCELLED, endings.unapplied(run))
    with suppress(endings.RunOverError):
        await endings.end_run(work, run, end, actor.principal)
        workflow_kind = rules.workflow_kind_of(run.data_source_id)
        await lifecycle.cancel_executions(work, workflow_kind, actor.workspace_id, [run_id])
        await leave_lines(work, actor.workspace_id, [run_id])


@dataclass(frozen=True, slots=True)
class DueRefresh:
    """An open run of a due time, and the request that starts it in Temporal.

    Its id follows from its schedule and its due time, so that no due time has two runs. It runs in
    the name of who made the data source.
    """

    run_id: Id
    workspace_id: Id
    request: StartRequest


async def fire_refresh(work: UnitOfWork, data_source_id: Id, due: datetime) -> DueRefresh | None:
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
    row = refresh_row(source, run_id, rules.RunTrigger.SCHEDULE, source.created_by_user_id)
    row["note"] = fire_note(schedule.timing.timetable, due)
    if await lifecycle.accept(work, DATA_SOURCE_RUNS, row):
        problem = await _refusal(work, await find_run(work, run_id))
        if problem is not None:
            await endings.fail_run(work, run_id, problem)
        else:
            await start_run(work, await find_run(work, run_id), child=True)
    status = await work.scalar(
        sa.select(data_source_run.c.status).where(data_source_run.c.id == run_id)
    )
    if status is None:
        await count_joined(work, data_source_id, due)
    if status not in rules.OPEN_RUN:
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
            f"Scheduled refreshes run as the creator of the data source. {error.message}"
            " A member with access can duplicate it to refresh it as themselves.",
        )
    return None


async def _check(work: UnitOfWork, run: SourceRunRow, actor: Actor) -> None:
    assert run.data_source_id is not None, "it is a refresh"
    placed = await visible(work, [run.workspace_id], run.data_source_id, actor.user_id)
    may_edit = placed is not None and level_on(placed, actor.role) >= Level.EDIT
    if Scope.DATA_SOURCES_WRITE not in actor.scopes or not may_edit:
        raise DeniedError("They no longer have edit access to the data source.")
    if run.database_id is None:
        raise ValidationError(NO_TARGET)
    await require_edit(work, actor, run.database_id, DENIED)

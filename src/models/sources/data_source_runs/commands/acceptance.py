"""Accepting and cancelling runs. The answer is final when its transaction commits."""

from contextlib import suppress

from sqlalchemy import select

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.core.work_bounds import require_place
from models.data.fields.queries import require_edit
from models.sources.data_source_runs.commands.endings import (
    RunEnd,
    RunOverError,
    end_run,
    unapplied,
)
from models.sources.data_source_runs.commands.staging import find_run
from models.sources.data_source_runs.lifecycle import DATA_SOURCE_RUNS
from models.sources.data_source_runs.queries import get_import, get_run, run_in_workspace
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import (
    OPEN_RUN,
    RETRIED,
    DataSourceRunStatus,
    RunTrigger,
    family_of,
)
from models.sources.data_source_runs.shapes import DataSourceRunDetail, SpreadsheetImportDetail
from models.sources.data_source_runs.tables import data_source_run
from models.sources.data_source_runs.titles import run_title
from models.sources.data_sources.queries import DataSourceRow, find_data_source
from models.sources.outbound_limits.turns import leave_lines
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ValidationError
from runtime.families import Family
from runtime.outbox import AWAITED, StartRequest

DISABLED = "The data source is disabled. Enable it, then refresh it."
NO_TARGET = "The data source has no target any more. Name a targetDatabaseId."


async def accept_refresh(
    work: UnitOfWork,
    actor: Actor,
    data_source_id: Id,
    run_id: Id,
    *,
    trigger: RunTrigger = RunTrigger.MANUAL,
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
    denied = "Filling a database needs edit access to it."
    await require_edit(work, actor, source.target_database_id, denied)
    # What the platform does by itself it does for who made the data source.
    row = refresh_row(source, run_id, trigger, actor.person or source.created_by_user_id)
    row["chain"] = list(actor.principal.run_chain)
    row["plan"]["force"] = force
    row["retry_of_run_id"] = retry_of
    if not await lifecycle.accept(work, DATA_SOURCE_RUNS, row):
        return await _open_run(work, actor.workspace_id, data_source_id, run_id)
    if not started_by_caller:
        of_sources = data_source_run.c.data_source_id.is_not(None)
        await require_place(work, actor, DATA_SOURCE_RUNS, Family.DATA_SOURCE_REFRESH, of_sources)
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
    if earlier.status not in RETRIED:
        raise ConflictError(f"Only a failed or cancelled run is retried; this is {earlier.status}.")
    force = (await find_run(work, run_id)).plan["force"]
    retry, kind = (data_source_id, retry_id), RunTrigger.RETRY
    made = await accept_refresh(work, actor, *retry, trigger=kind, force=force, retry_of=run_id)
    if made.id != retry_id:
        raise ConflictError("Another run of the data source is open. Wait for its end.")
    return made


def refresh_row(
    source: DataSourceRow, run_id: Id, trigger: RunTrigger, user_id: Id | None
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
        select(data_source_run.c.id).where(
            data_source_run.c.workspace_id == workspace_id,
            data_source_run.c.data_source_id == data_source_id,
            data_source_run.c.status.in_([status.value for status in OPEN_RUN]),
        )
    )
    return await get_run(work, workspace_id, data_source_id, open_id or run_id)


async def start_run(
    work: UnitOfWork, run: SourceRunRow, restarts: int = 0, *, child: bool = False
) -> None:
    """Have the execution of an accepted run started, or that of a `child` by its caller."""
    family, request = family_of(run.data_source_id), await start_request(work, run)
    if child:
        await lifecycle.stand_in_line(work, family, run.workspace_id, run.id, request)
    else:
        await lifecycle.start(work, family, run.workspace_id, run.id, request, restarts)


async def start_request(work: UnitOfWork, run: SourceRunRow) -> StartRequest:
    """The facts that Temporal is told of a run when it starts, and operators see.

    An import is found by the database it fills, if there is one already.
    """
    return {
        "summary": await run_title(work, run),
        "resourceId": str(run.data_source_id or run.database_id or run.id),
        "source": run.trigger,
        "weight": 1 if run.trigger == RunTrigger.SCHEDULE else AWAITED,
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
    end = RunEnd(DataSourceRunStatus.CANCELLED, unapplied(run))
    with suppress(RunOverError):
        await end_run(work, run, end, actor.principal)
        family = family_of(run.data_source_id)
        await lifecycle.cancel_executions(work, family, actor.workspace_id, [run_id])
        await leave_lines(work, actor.workspace_id, [run_id])

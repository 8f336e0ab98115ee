"""Ending runs for good, and notifying their waiting callers, in one transaction."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urljoin

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.core.access.rules import Principal, Role
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.messages.events.store import data_source_finished
from models.messages.jobs.rules import JobStatus
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.people.members import members_with, role_of
from models.sources.data_source_runs.queries import columns_of_run, get_run, remarks
from models.sources.data_source_runs.rules import RunTrigger
from models.sources.data_source_runs.shapes import RunColumns
from models.sources.data_source_runs.staging import forget_rejections, log_status, unstage
from models.sources.data_source_runs.tables import DATA_SOURCE_RUNS, SourceRunRow, data_source_run
from models.sources.data_sources.queries import source_item
from models.sources.tabular.rules.options import ErrorKind, SourceProblem
from runtime.clock import utc_now
from runtime.database import UnitOfWork


class RunOverError(Exception):
    """The run was closed by another transaction; the writes of this one are rolled back."""

    retryable = False


class RunEnd(NamedTuple):
    """The end of a run: its counts, its result, or the problem that kept it from one."""

    status: JobStatus
    stats: JsonObject
    result: JsonObject | None = None
    problem: SourceProblem | None = None


async def end_run(
    work: UnitOfWork, run: SourceRunRow, end: RunEnd, principal: Principal | None = None
) -> None:
    """Close an open run for good and notify its waiting callers; `principal` requested the end.

    Call it last, as `append_event` is. Raises RunOverError for a run that is closed.
    """
    began = run.started_at or run.created_at
    # The transaction may have begun long ago: it has applied the rows.
    now = utc_now()
    duration = round((now - began).total_seconds() * 1000)
    problem = end.problem
    kind = ErrorKind.CANCELLED if end.status is JobStatus.CANCELLED else None
    # The file and the credentials of an import are of no use any more.
    plan = _without_input(run.plan) if run.data_source_id is None else run.plan
    closed_ids = await lifecycle.finish(
        work,
        DATA_SOURCE_RUNS,
        [run.id],
        end.status,
        completed_at=now,
        plan=plan,
        # The next run finds it beside its source.
        progress=data_source_run.c.progress.op("-", return_type=JSONB())(sa.literal("remembered")),
        stats={**end.stats, "durationMs": duration},
        result=end.result,
        error=None if problem is None else problem.message,
        error_kind=kind if problem is None else problem.kind.value,
    )
    if not closed_ids:
        raise RunOverError
    if run.data_source_id is not None:
        shown = await get_run(work, run.workspace_id, run.data_source_id, run.id)
        body = shown.model_dump(mode="json", by_alias=True)
        await data_source_finished(
            work, run.workspace_id, run.data_source_id, body, chain=run.chain
        )
    if end.status is not JobStatus.CANCELLED:
        await _notify(work, run, end)
    await log_status(work, run, end.status, principal)


def _without_input(plan: JsonObject) -> JsonObject:
    """The plan of an import that has ended: without rows and headers, and of its URL the host."""
    config = {key: value for key, value in plan["config"].items() if key not in _INPUT}
    if "url" in config:
        # Paths and queries may hold what opens them.
        config["url"] = urljoin(config["url"], "/")
    return {**plan, "config": config}


_INPUT = frozenset({"content", "headers"})


async def _notify(work: UnitOfWork, run: SourceRunRow, end: RunEnd) -> None:
    if run.data_source_id is None:
        await _notify_of_import(work, run, end)
    elif end.problem is not None:
        await _notify_of_failure(work, run, run.data_source_id, end.problem)
    else:
        await _notify_of_columns(work, run, run.data_source_id)


async def _notify_of_import(work: UnitOfWork, run: SourceRunRow, end: RunEnd) -> None:
    if run.actor_user_id is None:
        return
    label, data = run.plan["label"], {"importId": str(run.id), "status": end.status.value}
    if end.problem is not None:
        title, body = f"“{label}” import failed", end.problem.message
        data["errorKind"] = end.problem.kind.value
    else:
        title, body = f"“{label}” was imported", _counted(run, end.stats)
    result = end.result or {}
    notice = Notice(
        kind=NotificationKind.IMPORT_FINISHED,
        title=title,
        body=body,
        item_id=Id(result["itemId"]) if "itemId" in result else None,
        run_id=run.id,
        data=data if end.result is None else {**data, "databaseId": end.result["databaseId"]},
        key=f"data-source-run/{run.id}",
    )
    await notify(work, run.workspace_id, [run.actor_user_id], notice)


def _counted(run: SourceRunRow, stats: JsonObject) -> str:
    written = sum(stats[name] for name in ("rowsInserted", "rowsUpdated", "rowsUnchanged"))
    rows = "row" if written == 1 else "rows"
    counts = [f"{written:,} {rows} imported, {stats['rowsSkipped']:,} skipped."]
    return " ".join([*counts, *remarks(RunColumns.model_validate(columns_of_run(run.progress)))])


async def _notify_of_failure(
    work: UnitOfWork, run: SourceRunRow, data_source_id: Id, problem: SourceProblem
) -> None:
    """Notify of a failure.

    A scheduled refresh is notified once for each kind of failure, until one succeeds.
    """
    source = await source_item(work, run.workspace_id, data_source_id)
    key = str(run.id)
    if run.trigger in _BY_ITSELF:
        since = await _last_success(work, run.workspace_id, data_source_id)
        key = f"{data_source_id}/{since}/{problem.kind}"
    notice = Notice(
        kind=NotificationKind.DATA_SOURCE_FAILED,
        title=f"“{source.title}” refresh failed",
        body=problem.message,
        item_id=source.id,
        run_id=run.id,
        data={"dataSourceId": str(data_source_id), "errorKind": problem.kind.value},
        key=f"data-source-failed/{key}",
    )
    await notify(work, run.workspace_id, await _recipients(work, run), notice)


_BY_ITSELF = frozenset({RunTrigger.SCHEDULE, RunTrigger.AUTOMATION})


async def _notify_of_columns(work: UnitOfWork, run: SourceRunRow, data_source_id: Id) -> None:
    """Notify of cells that could not be read, and of columns that are missing or have changed.

    A refresh that repeats by itself says only what the one before it did not say.
    """
    columns = RunColumns.model_validate(columns_of_run(run.progress))
    if run.trigger in _BY_ITSELF:
        before = RunColumns.model_validate(await _columns_before(work, run))
        is_told = _named(columns) <= _named(before) and not columns.changed_columns
    else:
        is_told = not (_named(columns) or columns.changed_columns)
    if is_told:
        return
    source = await source_item(work, run.workspace_id, data_source_id)
    notice = Notice(
        kind=NotificationKind.DATA_SOURCE_FAILED,
        title=f"“{source.title}” was refreshed with {_fault(columns)}",
        body=" ".join(remarks(columns)),
        item_id=source.id,
        run_id=run.id,
        data={
            "dataSourceId": str(data_source_id),
            "status": JobStatus.SUCCEEDED.value,
            "columns": columns.model_dump(mode="json", by_alias=True),
        },
        key=f"data-source-columns/{run.id}",
    )
    await notify(work, run.workspace_id, await _recipients(work, run), notice)


def _fault(columns: RunColumns) -> str:
    others = _named(columns) - {("rows", "")} or columns.changed_columns
    return "unreadable values" if others else "missing rows"


def _named(columns: RunColumns) -> set[tuple[str, str]]:
    """The columns that are missing, and those with cells that could not be read."""
    missing = {("missing", one.source_path) for one in columns.missing}
    if columns.rows_missing:
        missing.add(("rows", ""))
    return missing | {("skipped", one.source_path) for one in columns.skipped_cells}


async def _columns_before(work: UnitOfWork, run: SourceRunRow) -> JsonObject:
    """The columns of the last run of the same source that succeeded before this one."""
    progress: JsonObject | None = await work.scalar(
        sa.select(data_source_run.c.progress)
        .where(
            data_source_run.c.workspace_id == run.workspace_id,
            data_source_run.c.data_source_id == run.data_source_id,
            data_source_run.c.status == JobStatus.SUCCEEDED.value,
            data_source_run.c.id != run.id,
        )
        .order_by(data_source_run.c.created_at.desc())
        .limit(1)
    )
    return columns_of_run(progress or {})


async def _recipients(work: UnitOfWork, run: SourceRunRow) -> Sequence[Id]:
    """The person that a refresh acted for, or the owners when that person has left."""
    person = run.actor_user_id
    if person is not None and await role_of(work, run.workspace_id, person) is not None:
        return [person]
    return await members_with(work, run.workspace_id, Role.OWNER)


async def _last_success(work: UnitOfWork, workspace_id: Id, data_source_id: Id) -> Id | None:
    run_id: Id | None = await work.scalar(
        sa.select(data_source_run.c.id)
        .where(
            data_source_run.c.workspace_id == workspace_id,
            data_source_run.c.data_source_id == data_source_id,
            data_source_run.c.status == JobStatus.SUCCEEDED.value,
        )
        .order_by(data_source_run.c.created_at.desc())
        .limit(1)
    )
    return run_id


async def fail_run(work: UnitOfWork, run_id: Id, problem: SourceProblem) -> None:
    """End an open run with why it failed; one that is closed stays as it is."""
    await _give_up(work, run_id, JobStatus.FAILED, problem)


async def abandon_run(
    work: UnitOfWork, run_id: Id, status: JobStatus, reason: str | None = None
) -> bool:
    """End an open run whose execution could not continue, and remove its staged rows.

    False when it was closed before; what it staged is removed then, too.
    """
    cancelled = status is JobStatus.CANCELLED
    kind = ErrorKind.CANCELLED if cancelled else ErrorKind.INTERNAL
    problem = SourceProblem(kind, reason or _ABANDONED[kind])
    return await _give_up(work, run_id, status, problem)


_ABANDONED = {
    ErrorKind.CANCELLED: "Cancelled in Temporal.",
    ErrorKind.INTERNAL: "The run was interrupted. Try again.",
}


async def _give_up(work: UnitOfWork, run_id: Id, status: JobStatus, problem: SourceProblem) -> bool:
    run = await lifecycle.hold(work, DATA_SOURCE_RUNS, run_id, of=SourceRunRow)
    await unstage(work, run_id)
    await forget_rejections(work, run_id)
    if run is not None:
        await end_run(work, run, RunEnd(status, unapplied(run), problem=problem))
    return run is not None


def unapplied(run: SourceRunRow) -> JsonObject:
    """The counts of a run that has written nothing."""
    read = run.progress.get("read", 0)
    return {
        "rowsFetched": read,
        "rowsSkipped": read,
        "cellsSkipped": run.progress.get("lost", 0),
        "bytesFetched": run.progress.get("bytes", 0),
    }

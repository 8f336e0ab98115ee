"""Carrying a run out: comparing and applying what it staged, and ending it."""

from typing import Any

from sqlalchemy import func, select

from models.core.access.rules import Actor, Principal, PrincipalType
from models.core.base import Id, JsonObject
from models.data.databases.queries import get_database
from models.data.records.commands.bulk_events import emit_written
from models.data.records.commands.upsert import hold_upserts
from models.people.members.queries import role_of
from models.sources.data_source_runs.commands import application, comparison, merging
from models.sources.data_source_runs.commands.application import Application
from models.sources.data_source_runs.commands.comparison import SKIPPED, UNCHANGED, UPDATED
from models.sources.data_source_runs.commands.endings import RunEnd, end_run
from models.sources.data_source_runs.commands.source_columns import (
    fills_new_field,
    remember_columns,
)
from models.sources.data_source_runs.commands.staging import (
    forget_earlier_rejections,
    is_staged,
    reject_skipped,
    unstage,
)
from models.sources.data_source_runs.commands.targets import open_target
from models.sources.data_source_runs.rows import SourceRunRow, source_id_of
from models.sources.data_source_runs.rules import DataSourceRunStatus, exceeds_guard
from models.sources.data_sources.rules.configs import FieldMapping, RemovedRows, WriteMode
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.database import UnitOfWork
from runtime.errors import DeniedError

APPLY_SECONDS = 600
"""Seconds of one statement that applies rows."""


class StagedRowsLostError(Exception):
    """PostgreSQL has crashed since the rows were staged: they are to be staged again."""

    retryable = True


async def take_long(work: UnitOfWork) -> None:
    """Let statements of this transaction take as long as very many rows need."""
    await work.execute(select(func.set_config("statement_timeout", f"{APPLY_SECONDS}s", True)))


async def run_actor(work: UnitOfWork, run: SourceRunRow) -> Actor:
    """The user who asked for the run, with the rights they have now. Raises `DeniedError`."""
    user_id = run.actor_user_id
    role = None if user_id is None else await role_of(work, run.workspace_id, user_id)
    if role is None or user_id is None:
        raise DeniedError("Whoever asked for this is no member of the workspace any more.")
    principal = Principal(
        type=PrincipalType.SYSTEM,
        id=run.id,
        user_id=user_id,
        run_id=run.id,
        run_chain=tuple(run.chain),
        bulk=True,
    )
    return Actor(
        principal=principal,
        workspace_id=run.workspace_id,
        role=role,
        scopes=principal.effective_scopes(role),
    )


async def apply_run(work: UnitOfWork, run: SourceRunRow) -> JsonObject:
    """Apply what a run has staged, and end it, in this one transaction; gives the counts.

    The row of the run is not held, so that a cancel never waits: it wins, and this raises
    RunOverError. Raises StagedRowsLostError, SourceProblem for what only another config mends,
    `PlatformError` for who may not write any more.
    """
    await take_long(work)
    actor = await run_actor(work, run)
    mapping = [FieldMapping.model_validate(entry) for entry in run.progress["mapping"]]
    schema = await open_target(work, actor, run, mapping, run.progress["options"])
    keys = [entry.field_key for entry in mapping]
    rows = comparison.Comparison(
        schema,
        run.id,
        source_id_of(run),
        unfilled=run.progress.get("unfilled", ()),
        anew=await fills_new_field(work, run, schema, keys),
    )
    applied = Application(
        rows,
        actor,
        keys,
        appended=WriteMode(run.plan["writeMode"]) is WriteMode.APPEND,
        creates=run.database_id is None,
        merges="sourceId" in run.plan,
    )
    await hold_upserts(work, schema.database_id)
    async with comparison.joining_sets(work):
        if not await is_staged(work, run):
            raise StagedRowsLostError
        stats = await _compare_and_write(work, run, applied)
        await unstage(work, run.id)
    await remember_columns(work, run, schema)
    await succeed(work, run, actor, schema.database_id, stats)
    return stats


async def succeed(
    work: UnitOfWork, run: SourceRunRow, actor: Actor, database_id: Id, stats: JsonObject
) -> None:
    """End a run that has filled a database. Raises RunOverError for one that is closed."""
    filled = await get_database(work, actor, database_id)
    await forget_earlier_rejections(work, run)
    result = {
        "databaseId": str(filled.id),
        "itemId": str(filled.item_id),
        "label": filled.label,
        "lost": run.progress.get("lost", 0),
    }
    await end_run(work, run, RunEnd(DataSourceRunStatus.SUCCEEDED, stats, result))


def counted(run: SourceRunRow, **counts: int) -> JsonObject:
    """The counts of a run that has written; a count that is not given is none."""
    names = ("Inserted", "Updated", "Unchanged", "Removed", "Skipped", "Kept")
    skipped = run.progress.get("skipped", 0) + counts.get("skipped", 0)
    return {
        "rowsFetched": run.progress.get("read", 0),
        **{f"rows{name}": counts.get(name.lower(), 0) for name in names},
        "rowsSkipped": skipped,
        "cellsSkipped": run.progress.get("lost", 0),
        "bytesFetched": run.progress.get("bytes", 0),
    }


async def _compare_and_write(
    work: UnitOfWork, run: SourceRunRow, applied: Application
) -> JsonObject:
    """Write what the comparison finds; gives the counts."""
    rows, plan = applied.rows, run.plan
    keys = plan["keyFields"]
    matched = 0
    if not applied.appended:
        await comparison.make_unique(work, rows, keyed=bool(keys))
        matched = await comparison.match_known(work, rows)
    kept_count = await merging.match_changed(work, rows, applied.keys) if applied.merges else 0
    if applied.merges and rows.unfilled:
        await merging.keep_unfilled(work, rows)
    counts = await comparison.count_changes(work, rows)
    found_by_keys = bool(keys and counts.get(None, 0) and not applied.appended)
    if found_by_keys:
        await comparison.match_keys(work, rows, keys)
        counts = await comparison.count_changes(work, rows)
    if counts.get(SKIPPED, 0):
        await reject_skipped(work, run)
    gone = await _removed(work, run, applied, matched)
    removals = 0
    if gone is not None:
        # Before anything is inserted: a replacement takes what no row has, and that has no row yet.
        removals = await application.remove_gone(work, applied, *gone)
    inserted = counts.get(None, 0)
    if inserted:
        await application.insert_new(work, applied, inserted)
    updated = 0
    if counts.get(UPDATED, 0):
        updated = await application.update_changed(work, applied, found_by_keys=found_by_keys)
    if inserted or updated or removals:
        await application.derive(work, applied)
        await emit_written(work, applied.actor, rows.schema)
    return counted(
        run,
        inserted=inserted,
        updated=updated,
        unchanged=counts.get(UNCHANGED, 0) + counts.get(UPDATED, 0) - updated,
        removed=removals,
        skipped=counts.get(SKIPPED, 0),
        kept=kept_count,
    )


async def _removed(
    work: UnitOfWork, run: SourceRunRow, applied: Application, matched: int
) -> tuple[Any, RemovedRows] | None:
    """The records to remove, and how; None when none are. Raises SourceProblem at the guard.

    So many rows that the source had are `matched` by staged ones.
    """
    mode, policy = WriteMode(run.plan["writeMode"]), RemovedRows(run.plan["removedRows"])
    if mode is WriteMode.APPEND or (policy is RemovedRows.KEEP and mode is WriteMode.UPSERT):
        return None
    rows = applied.rows
    if mode is WriteMode.UPSERT and matched == await comparison.count_known(
        work, rows, removed=True
    ):
        return None
    selection = comparison.gone_rows(rows)
    if applied.merges:
        selection = merging.gone_untouched(rows, applied.keys)
    if mode is WriteMode.REPLACE:
        selection = comparison.other_records(rows)
        policy = RemovedRows.DELETE if policy is RemovedRows.KEEP else policy
    removals = await comparison.count_rows(work, selection)
    if removals == 0:
        return None
    known = await comparison.count_known(work, rows)
    percent = run.plan["removalGuardPercent"]
    if not run.plan.get("force") and exceeds_guard(removals, max(known, removals), percent):
        raise SourceProblem(
            ErrorKind.GUARD,
            f"The refresh would remove {removals:,} of {known:,} rows, more than {percent} %."
            " Nothing was changed. Refresh with force if the rows are really gone.",
        )
    return selection, policy

"""Carrying a run out: applying or appending its rows, or finding that nothing has changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from models.core.access.rules import Actor, Principal, PrincipalType
from models.core.base import Id, JsonObject
from models.core.repository import first_id
from models.data.databases.store import get_database
from models.data.fields.queries import fields_changed_at, load_schema, require_edit
from models.data.fields.rules.fields import FieldSpec, Option, Schema
from models.data.records.bulk import derive_where
from models.data.records.events import emit_written
from models.data.records.queries import RECORD
from models.data.records.rules.values import lead_of_copies
from models.data.records.upserts import hold_upserts
from models.messages.jobs.rules import JobStatus
from models.people.members import role_of
from models.sources.data_source_runs import application, comparison, staging, targets
from models.sources.data_source_runs.endings import RunEnd, RunOverError, end_run
from models.sources.data_source_runs.rules import Stage, exceeds_guard
from models.sources.data_source_runs.tables import (
    SourceRunRow,
    data_source_run,
    source_id_of,
    source_row,
)
from models.sources.data_sources.rules import FieldMapping, RemovedRows, WriteMode
from models.sources.tabular.rules.conversion import RecordLines
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ErrorKind, SourceProblem
from runtime.database import UnitOfWork
from runtime.errors import DeniedError

APPLY_SECONDS = 600
"""Seconds of one statement that applies rows."""


class StagedRowsLostError(Exception):
    """PostgreSQL has crashed since the rows were staged: they are to be staged again."""

    retryable = True


async def take_long(work: UnitOfWork) -> None:
    """Let statements of this transaction take as long as very many rows need."""
    await work.execute(
        sa.select(sa.func.set_config("statement_timeout", f"{APPLY_SECONDS}s", True))
    )


async def run_actor(work: UnitOfWork, run: SourceRunRow) -> Actor:
    """The user who asked for the run, with the rights they have now. Raises `DeniedError`."""
    user_id = run.actor_user_id
    role = None if user_id is None else await role_of(work, run.workspace_id, user_id)
    if role is None or user_id is None:
        raise DeniedError("The requester is no longer a member of the workspace.")
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
    schema = await targets.open_target(work, actor, run, mapping, run.progress["options"])
    keys = [entry.field_key for entry in mapping]
    rows = comparison.Comparison(
        schema,
        run.id,
        source_id_of(run),
        unfilled=run.progress.get("unfilled", ()),
        anew=await targets.fills_new_field(work, run, schema, keys),
    )
    applied = application.Application(
        rows,
        actor,
        keys,
        appended=WriteMode(run.plan["writeMode"]) is WriteMode.APPEND,
        creates=run.database_id is None,
        merges="sourceId" in run.plan,
    )
    await hold_upserts(work, schema.database_id)
    async with comparison.joining_sets(work):
        if not await staging.is_staged(work, run):
            raise StagedRowsLostError
        stats = await _compare_and_write(work, run, applied)
        await staging.unstage(work, run.id)
    await targets.remember_columns(work, run, schema)
    await succeed(work, run, actor, schema.database_id, stats)
    return stats


async def succeed(
    work: UnitOfWork, run: SourceRunRow, actor: Actor, database_id: Id, stats: JsonObject
) -> None:
    """End a run that has filled a database. Raises RunOverError for one that is closed."""
    filled = await get_database(work, actor, database_id)
    await staging.forget_earlier_rejections(work, run)
    result = {
        "databaseId": str(filled.id),
        "itemId": str(filled.item_id),
        "label": filled.label,
        "lost": run.progress.get("lost", 0),
    }
    await end_run(work, run, RunEnd(JobStatus.SUCCEEDED, stats, result))


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
    work: UnitOfWork, run: SourceRunRow, applied: application.Application
) -> JsonObject:
    """Write what the comparison finds; gives the counts."""
    rows, plan = applied.rows, run.plan
    keys = plan["keyFields"]
    matched = 0
    if not applied.appended:
        await comparison.make_unique(work, rows, keyed=bool(keys))
        matched = await comparison.match_known(work, rows)
    kept_count = await comparison.match_changed(work, rows, applied.keys) if applied.merges else 0
    if applied.merges and rows.unfilled:
        await comparison.keep_unfilled(work, rows)
    counts = await comparison.count_changes(work, rows)
    found_by_keys = bool(keys and counts.get(None, 0) and not applied.appended)
    if found_by_keys:
        await comparison.match_keys(work, rows, keys)
        counts = await comparison.count_changes(work, rows)
    if counts.get(comparison.SKIPPED, 0):
        await staging.reject_skipped(work, run)
    gone = await _removed(work, run, applied, matched)
    removals = 0
    if gone is not None:
        # Before anything is inserted: a replacement takes what no row has, and that has no row yet.
        removals = await application.remove_gone(work, applied, *gone)
    inserted = counts.get(None, 0)
    if inserted:
        await application.insert_new(work, applied, inserted)
    updated = 0
    if counts.get(comparison.UPDATED, 0):
        updated = await application.update_changed(work, applied, found_by_keys=found_by_keys)
    if inserted or updated or removals:
        await application.derive(work, applied)
        await emit_written(work, applied.actor, rows.schema)
    return counted(
        run,
        inserted=inserted,
        updated=updated,
        unchanged=counts.get(comparison.UNCHANGED, 0) + counts.get(comparison.UPDATED, 0) - updated,
        removed=removals,
        skipped=counts.get(comparison.SKIPPED, 0),
        kept=kept_count,
    )


async def _removed(
    work: UnitOfWork, run: SourceRunRow, applied: application.Application, matched: int
) -> tuple[Any, RemovedRows] | None:
    """The records to remove, and how; None when none are. Raises SourceProblem at the guard.

    `matched` is the number of earlier rows of the source that staged ones match.
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
        selection = comparison.gone_untouched(rows, applied.keys)
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
            " Nothing was changed. If that is right, force the refresh.",
        )
    return selection, policy


def appends(run: SourceRunRow) -> bool:
    """True when a run has nothing to compare its rows with.

    It creates its database, no other run will know its rows again, and no row replaces another.
    """
    keyed = run.plan["keyFields"] and WriteMode(run.plan["writeMode"]) is not WriteMode.APPEND
    return run.database_id is None and "sourceId" not in run.plan and not keyed


@dataclass(frozen=True, slots=True)
class NewTarget:
    """The database that a run has created, who writes it, and the form its rows are copied in."""

    schema: Schema
    actor: Actor
    lines: RecordLines


async def create_target(
    work: UnitOfWork, run: SourceRunRow, mapping: Sequence[FieldMapping], new_options: targets.Grown
) -> NewTarget:
    """Create the database of a run in this transaction, which `finish_append` ends.

    Raises `NotFoundError` and `DeniedError` for who may not create it any more.
    """
    await take_long(work)
    actor = await run_actor(work, run)
    schema = await targets.open_target(work, actor, run, mapping, new_options)
    lead = lead_of_copies(actor, schema.database_id, work.now)
    return NewTarget(schema, actor, RecordLines(lead, await first_id(work)))


def with_options(fields: Sequence[FieldSpec], new_options: targets.Grown) -> list[FieldSpec]:
    """The fields with the options that rows need."""
    return [
        replace(
            spec,
            options=(*spec.options, *(Option(**one) for one in new_options.get(spec.key, ()))),
        )
        for spec in fields
    ]


async def finish_append(
    work: UnitOfWork, run: SourceRunRow, target: NewTarget, inserted: int, **progress: object
) -> JsonObject:
    """Bring up to date what follows from the rows, and end the run; gives the counts.

    The row of the run is held from here only, so that a cancel never waits long: it wins, and this
    raises RunOverError.
    """
    if inserted:
        await derive_where(work, target.schema, sa.true())
        await emit_written(work, target.actor, target.schema)
    if not await staging.record_progress(work, run.id, stage=Stage.APPLY.value, **progress):
        raise RunOverError
    written = await staging.find_run(work, run.id)
    stats = counted(written, inserted=inserted)
    await succeed(work, written, target.actor, target.schema.database_id, stats)
    return stats


_WRITTEN = ("rowsInserted", "rowsUpdated", "rowsUnchanged")


async def repeated_run(
    work: UnitOfWork, run: SourceRunRow, content: str | None = None
) -> SourceRunRow | None:
    """The last run that succeeded, if doing the same again would change nothing.

    It read this `content`; without one, it has validators that ask the source. Only an upsert does
    nothing with rows that it has seen. Another config, `force`, a run that was reverted, and a
    target that is not as it was left need all rows again.

    A source that cannot be asked what has changed sends all again; the same bytes, read in the same
    way, are the same rows.
    """
    if run.plan["force"] or run.plan["writeMode"] != WriteMode.UPSERT:
        return None
    last = await _last_run(work, run)
    if last is None or last.reverted_at is not None:
        return None
    if not validators_of(last) if content is None else last.progress.get("content") != content:
        return None
    same = last.database_id == run.database_id and {**last.plan, "force": False} == run.plan
    return last if same and await _is_as_left(work, last) else None


async def last_conventions(work: UnitOfWork, run: SourceRunRow) -> Conventions | None:
    """The conventions by which the data source of a run was read last."""
    last = None if run.data_source_id is None else await _last_run(work, run)
    stored = None if last is None else last.progress.get("conventions")
    return None if stored is None else Conventions.of(stored)


async def _last_run(work: UnitOfWork, run: SourceRunRow) -> SourceRunRow | None:
    """The last run of the same data source that succeeded."""
    return await work.first(
        sa.select(data_source_run)
        .where(
            data_source_run.c.workspace_id == run.workspace_id,
            data_source_run.c.data_source_id == run.data_source_id,
            data_source_run.c.status == JobStatus.SUCCEEDED.value,
        )
        .order_by(data_source_run.c.id.desc())
        .limit(1),
        of=SourceRunRow,
    )


def validators_of(run: SourceRunRow) -> Mapping[str, str]:
    """The headers that ask a source whether it has changed since a run."""
    found: Mapping[str, str] = run.progress.get("fetched", {}).get("validators", {})
    return found


async def _is_as_left(work: UnitOfWork, last: SourceRunRow) -> bool:
    """True when every row of the run still has its record, and every field is as it was."""
    assert last.database_id is not None, "a data source has a target"
    schema = await load_schema(work, last.workspace_id, last.database_id)
    if not {one["fieldKey"] for one in last.progress["mapping"]} <= schema.fields.keys():
        return False
    changed_at = await fields_changed_at(work, last.workspace_id, last.database_id)
    if last.completed_at is None or changed_at > last.completed_at:
        return False
    statement = (
        sa.select(sa.func.count())
        .select_from(source_row)
        .where(
            source_row.c.workspace_id == last.workspace_id,
            source_row.c.source_id == last.data_source_id,
            source_row.c.removed.is_(False),
            RECORD.workspace_id == source_row.c.workspace_id,
            RECORD.id == source_row.c.record_id,
            RECORD.database_id == last.database_id,
            RECORD.deleted_at.is_(None),
        )
    )
    async with comparison.joining_sets(work):
        return bool(await work.scalar(statement) == _written(last.stats))


def _written(stats: JsonObject) -> int:
    return sum(stats[name] for name in _WRITTEN)


async def end_unchanged(
    work: UnitOfWork,
    run: SourceRunRow,
    last: SourceRunRow,
    validators: Mapping[str, str],
    received: int,
) -> None:
    """End a run whose source is as `last` read it: all of its rows count.

    The source has sent this number of bytes to say so, and these validators of its content. Raises
    RunOverError, and `PlatformError` for who may not write any more.
    """
    assert run.database_id is not None, "a data source has a target"
    await require_edit(work, await run_actor(work, run), run.database_id, targets.DENIED)
    await staging.record_progress(
        work,
        run.id,
        fetched={"validators": dict(validators)},
        content=last.progress.get("content"),
        mapping=last.progress["mapping"],
        conventions=last.progress.get("conventions"),
        columns={**last.progress.get("columns", {}), "added": [], "changed": []},
        lost=last.progress.get("lost", 0),
        lostIn=last.progress.get("lostIn", {}),
    )
    stats = {
        "rowsFetched": last.stats["rowsFetched"],
        "rowsInserted": 0,
        "rowsUpdated": 0,
        "rowsUnchanged": _written(last.stats),
        "rowsRemoved": 0,
        "rowsSkipped": last.stats["rowsSkipped"],
        "cellsSkipped": last.progress.get("lost", 0),
        "bytesFetched": received,
    }
    result = {key: value for key, value in (last.result or {}).items() if key != "reversal"}
    await end_run(work, run, RunEnd(JobStatus.SUCCEEDED, stats, result))

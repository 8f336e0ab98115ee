"""Asking a source only for what has changed since its last run (RFC 9110, section 13).

A source that cannot be asked sends all again; the same bytes, read in the same way, are the same
rows.
"""

from collections.abc import Mapping

from sqlalchemy import func, select

from models.core.base import JsonObject
from models.data.fields.queries import fields_changed_at, load_schema, require_edit
from models.data.records.queries.records import RECORD
from models.sources.data_source_runs.commands.comparison import joining_sets
from models.sources.data_source_runs.commands.endings import RunEnd, end_run
from models.sources.data_source_runs.commands.execution import run_actor
from models.sources.data_source_runs.commands.staging import record_progress
from models.sources.data_source_runs.commands.targets import DENIED
from models.sources.data_source_runs.rows import SourceRunRow
from models.sources.data_source_runs.rules import DataSourceRunStatus
from models.sources.data_source_runs.tables import data_source_run, source_row
from models.sources.data_sources.rules.configs import WriteMode
from models.sources.tabular.rules.formats import Conventions
from runtime.database import UnitOfWork

_WRITTEN = ("rowsInserted", "rowsUpdated", "rowsUnchanged")


async def repeated_run(
    work: UnitOfWork, run: SourceRunRow, content: str | None = None
) -> SourceRunRow | None:
    """The last run that succeeded, if doing the same again would change nothing.

    It read this `content`; without one, it has validators that ask the source. Only an upsert does
    nothing with rows that it has seen. Another config, `force`, a run that was reverted, and a
    target that is not as it was left need all rows again.
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
        select(data_source_run)
        .where(
            data_source_run.c.workspace_id == run.workspace_id,
            data_source_run.c.data_source_id == run.data_source_id,
            data_source_run.c.status == DataSourceRunStatus.SUCCEEDED.value,
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
        select(func.count())
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
    async with joining_sets(work):
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

    The source has sent so many bytes to say so, and these validators of what it has. Raises
    RunOverError, and `PlatformError` for who may not write any more.
    """
    assert run.database_id is not None, "a data source has a target"
    await require_edit(work, await run_actor(work, run), run.database_id, DENIED)
    await record_progress(
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
    await end_run(work, run, RunEnd(DataSourceRunStatus.SUCCEEDED, stats, result))

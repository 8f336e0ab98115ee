"""Reverting a run: its records become what they were, unless a member changed them since."""

from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    ColumnElement,
    Select,
    Text,
    Uuid,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    literal,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.databases.commands import delete_database
from models.data.fields.commands import share_schema
from models.data.fields.queries import load_schema, require_edit
from models.data.fields.rules.fields import TITLE_KEY
from models.data.record_changes.history import CHANGE
from models.data.record_changes.rules import ChangeKind
from models.data.records.bulk import derive_where, update_from
from models.data.records.events import emit_written
from models.data.records.queries import RECORD
from models.data.records.rows import CHANGES_WITH_CREATIONS
from models.messages.jobs.store import accept_job, has_open_job
from models.sources.data_source_runs.lifecycle import SourceRunRow, source_id_of
from models.sources.data_source_runs.queries import run_in_workspace
from models.sources.data_source_runs.rules import REVERTIBLE, DataSourceRunStatus
from models.sources.data_source_runs.tables import data_source_run, source_row
from models.sources.data_source_runs.targets import DENIED
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError
from runtime.postgresql.schema import Timestamp
from runtime.temporal.families import Family


async def accept_reversal(
    work: UnitOfWork, actor: Actor, run_id: Id, data_source_id: Id | None, job_id: Id
) -> None:
    """Accept the job that reverts a run; a run that was reverted already needs none.

    Raises `NotFoundError`, `DeniedError` without edit access to its target, `ConflictError` for a
    run that wrote nothing, was too long ago, or was followed by another.
    """
    run = await run_in_workspace(work, actor.workspace_id, run_id)
    if run.data_source_id != data_source_id:
        raise NotFoundError("run")
    if run.reverted_at is not None:
        return
    if run.status != DataSourceRunStatus.SUCCEEDED or run.result is None:
        raise ConflictError("Only succeeded runs can be reverted.")
    if run.completed_at is None or run.completed_at < work.now - REVERTIBLE:
        raise ConflictError(f"Runs can only be reverted for {REVERTIBLE.days} days.")
    if data_source_id is not None and await _was_followed(work, run):
        raise ConflictError("A later run has refreshed the data source. Revert that one first.")
    await require_edit(work, actor, Id(run.result["databaseId"]), DENIED)
    await accept_job(
        work,
        actor,
        Family.DATA_SOURCE_REVERSAL,
        job_id,
        run_id,
        summary="Revert a run of a data source",
    )


async def is_reverting(work: UnitOfWork, actor: Actor, run_id: Id) -> bool:
    """True while the reversal of a run is open."""
    return await has_open_job(work, actor.workspace_id, Family.DATA_SOURCE_REVERSAL, run_id)


async def _was_followed(work: UnitOfWork, run: SourceRunRow) -> bool:
    later = exists().where(
        data_source_run.c.workspace_id == run.workspace_id,
        data_source_run.c.data_source_id == run.data_source_id,
        data_source_run.c.created_at > run.created_at,
        data_source_run.c.status == DataSourceRunStatus.SUCCEEDED.value,
        data_source_run.c.reverted_at.is_(None),
    )
    return bool(await work.scalar(select(later)))


async def revert_run(work: UnitOfWork, actor: Actor, run_id: Id) -> JsonObject:
    """Revert a run in this transaction; the numbers of reverted and of kept records.

    A database that the run created goes to the trash as a whole.
    """
    actor = replace(actor, principal=replace(actor.principal, bulk=True))
    run = await run_in_workspace(work, actor.workspace_id, run_id)
    assert run.result is not None, "the run was accepted for it"
    database_id = Id(run.result["databaseId"])
    counts = {"reverted": 0, "kept": 0}
    if run.database_id is None:
        await delete_database(work, actor, database_id)
        counts["reverted"] = run.stats["rowsInserted"]
    else:
        counts = await _revert_records(work, actor, run, database_id)
    await work.execute(
        update(data_source_run)
        .where(data_source_run.c.workspace_id == run.workspace_id, data_source_run.c.id == run.id)
        .values(reverted_at=work.now, result={**run.result, "reversal": counts})
    )
    return counts


async def _revert_records(
    work: UnitOfWork, actor: Actor, run: SourceRunRow, database_id: Id
) -> dict[str, int]:
    await work.execute(select(func.set_config("statement_timeout", "600s", True)))
    await share_schema(work, database_id)
    schema = await load_schema(work, run.workspace_id, database_id)
    total = await work.scalar(select(func.count()).select_from(_changes(run).subquery()))
    given = _before(run, actor, work).cte("given").prefix_with("MATERIALIZED")
    reverted = await update_from(work, actor, schema, given)
    mine = (
        source_row.c.workspace_id == run.workspace_id,
        source_row.c.source_id == source_id_of(run),
        source_row.c.run_id == run.id,
    )
    await derive_where(work, schema, RECORD.id.in_(select(source_row.c.record_id).where(*mine)))
    await emit_written(work, actor, schema)
    # The next refresh compares anew: what was created is unknown again, all else has changed.
    created = select(
        _changes(run)
        .where(CHANGES_WITH_CREATIONS.c.kind == ChangeKind.CREATED.value)
        .subquery()
        .c.id
    )
    await work.execute(delete(source_row).where(*mine, source_row.c.record_id.in_(created)))
    await work.execute(update(source_row).where(*mine).values(digest=b"", removed=False))
    return {"reverted": reverted, "kept": total - reverted}


def _changes(run: SourceRunRow) -> Select[Any]:
    """The changes that the run made, with the ids of their records."""
    return select(RECORD.id, CHANGES_WITH_CREATIONS.c.id.label("change_id")).where(
        source_row.c.workspace_id == run.workspace_id,
        source_row.c.source_id == source_id_of(run),
        source_row.c.run_id == run.id,
        RECORD.workspace_id == source_row.c.workspace_id,
        RECORD.id == source_row.c.record_id,
        CHANGES_WITH_CREATIONS.c.workspace_id == RECORD.workspace_id,
        CHANGES_WITH_CREATIONS.c.record_id == RECORD.id,
        CHANGES_WITH_CREATIONS.c.run_id == run.id,
    )


def _before(run: SourceRunRow, actor: Actor, work: UnitOfWork) -> Select[Any]:
    """The records as they were, as `update_from` takes them, but the ones that changed since."""
    # A creation that is not written is later than nothing.
    later = CHANGE.id.table.alias("later")
    changed_since = exists().where(
        later.c.workspace_id == CHANGES_WITH_CREATIONS.c.workspace_id,
        later.c.record_id == CHANGES_WITH_CREATIONS.c.record_id,
        later.c.id > CHANGES_WITH_CREATIONS.c.id,
    )
    empty = literal({}, JSONB)
    old, new = (
        func.coalesce(CHANGES_WITH_CREATIONS.c.before, empty),
        func.coalesce(CHANGES_WITH_CREATIONS.c.after, empty),
    )
    created = CHANGES_WITH_CREATIONS.c.kind == ChangeKind.CREATED.value
    updated = CHANGES_WITH_CREATIONS.c.kind == ChangeKind.UPDATED.value
    named = select(func.jsonb_object_keys(old.op("||")(new))).correlate(CHANGES_WITH_CREATIONS)
    keys = func.array(named.scalar_subquery(), type_=ARRAY(Text))
    return (
        _changes(run)
        .with_only_columns(
            RECORD.id,
            cast(null(), ARRAY(Text)).label("omitted"),
            case(
                (created, ChangeKind.DELETED.value),
                (updated, ChangeKind.UPDATED.value),
                else_=ChangeKind.RESTORED.value,
            ).label("kind"),
            _where(updated, new).label("before"),
            _where(updated, old).label("after"),
            case(
                (updated, func.coalesce(old.op("->>")(TITLE_KEY), RECORD.title)),
                else_=RECORD.title,
            ).label("title"),
            case(
                (updated, old.op("-", return_type=JSONB())(literal(TITLE_KEY, Text))), else_=empty
            ).label("data"),
            case((updated, keys), else_=literal([], ARRAY(Text))).label("cleared"),
            case((created, RECORD.archived), else_=literal(False, Boolean)).label("archived"),
            literal(actor.user_id, Uuid).label("updated_by_user_id"),
            literal(work.now, Timestamp).label("updated_at"),
            case((created, literal(work.now, Timestamp)), else_=null()).label("deleted_at"),
        )
        .where(~changed_since, and_(CHANGES_WITH_CREATIONS.c.omitted_keys.is_(None)))
    )


def _where(condition: ColumnElement[bool], values: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((condition, values), else_=cast(null(), JSONB))

"""Reverting a run: its records become what they were, unless a member changed them since."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.databases.store import delete_database
from models.data.fields.commands import share_schema
from models.data.fields.queries import load_schema, require_edit
from models.data.fields.rules.fields import TITLE_KEY
from models.data.record_changes.history import CHANGE
from models.data.record_changes.rules import ChangeKind
from models.data.records.bulk import derive_where, update_from
from models.data.records.events import emit_written
from models.data.records.queries import RECORD
from models.data.records.rows import CHANGES_WITH_CREATIONS, creation_columns, held_records
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import accept_job, has_open_job
from models.sources.data_source_runs.queries import run_in_workspace
from models.sources.data_source_runs.rules import REVERTIBLE
from models.sources.data_source_runs.tables import (
    SourceRunRow,
    data_source_run,
    source_id_of,
    source_row,
)
from models.sources.data_source_runs.targets import DENIED
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError
from runtime.postgresql.schema import Timestamp
from runtime.temporal.workflow_kinds import WorkflowKind


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
    if run.status != JobStatus.SUCCEEDED or run.result is None:
        raise ConflictError("Only succeeded runs can be reverted.")
    if run.completed_at is None or run.completed_at < work.now - REVERTIBLE:
        raise ConflictError(f"Runs can only be reverted for {REVERTIBLE.days} days.")
    if data_source_id is not None and await _was_followed(work, run):
        raise ConflictError("A later run has refreshed the data source. Revert that one first.")
    await require_edit(work, actor, Id(run.result["databaseId"]), DENIED)
    await accept_job(
        work,
        actor,
        WorkflowKind.DATA_SOURCE_REVERSAL,
        job_id,
        run_id,
        summary="Revert a run of a data source",
    )


async def is_reverting(work: UnitOfWork, actor: Actor, run_id: Id) -> bool:
    """True while the reversal of a run is open."""
    return await has_open_job(work, actor.workspace_id, WorkflowKind.DATA_SOURCE_REVERSAL, run_id)


async def _was_followed(work: UnitOfWork, run: SourceRunRow) -> bool:
    later = sa.exists().where(
        data_source_run.c.workspace_id == run.workspace_id,
        data_source_run.c.data_source_id == run.data_source_id,
        data_source_run.c.created_at > run.created_at,
        data_source_run.c.status == JobStatus.SUCCEEDED.value,
        data_source_run.c.reverted_at.is_(None),
    )
    return bool(await work.scalar(sa.select(later)))


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
        sa.update(data_source_run)
        .where(data_source_run.c.workspace_id == run.workspace_id, data_source_run.c.id == run.id)
        .values(reverted_at=work.now, result={**run.result, "reversal": counts})
    )
    return counts


async def _revert_records(
    work: UnitOfWork, actor: Actor, run: SourceRunRow, database_id: Id
) -> dict[str, int]:
    await work.execute(sa.select(sa.func.set_config("statement_timeout", "600s", True)))
    await share_schema(work, database_id)
    schema = await load_schema(work, run.workspace_id, database_id)
    total = await work.scalar(sa.select(sa.func.count()).select_from(_changes(run).subquery()))
    given = _before(run, actor, work).cte("given").prefix_with("MATERIALIZED")
    reverted = await update_from(work, actor, schema, given)
    mine = (
        source_row.c.workspace_id == run.workspace_id,
        source_row.c.source_id == source_id_of(run),
        source_row.c.run_id == run.id,
    )
    await derive_where(work, schema, RECORD.id.in_(sa.select(source_row.c.record_id).where(*mine)))
    await emit_written(work, actor, schema)
    # The next refresh compares anew: what was created is unknown again, all else has changed.
    created = sa.select(
        _changes(run)
        .where(CHANGES_WITH_CREATIONS.c.kind == ChangeKind.CREATED.value)
        .subquery()
        .c.id
    )
    await work.execute(sa.delete(source_row).where(*mine, source_row.c.record_id.in_(created)))
    await work.execute(sa.update(source_row).where(*mine).values(digest=b"", removed=False))
    return {"reverted": reverted, "kept": total - reverted}


def _changes(run: SourceRunRow) -> sa.Select[Any]:
    """The changes that the run made, with the ids of their records."""
    return sa.select(RECORD.id, CHANGES_WITH_CREATIONS.c.id.label("change_id")).where(
        *_made_by(run)
    )


def _made_by(run: SourceRunRow) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        source_row.c.workspace_id == run.workspace_id,
        source_row.c.source_id == source_id_of(run),
        source_row.c.run_id == run.id,
        RECORD.workspace_id == source_row.c.workspace_id,
        RECORD.id == source_row.c.record_id,
        CHANGES_WITH_CREATIONS.c.workspace_id == RECORD.workspace_id,
        CHANGES_WITH_CREATIONS.c.record_id == RECORD.id,
        CHANGES_WITH_CREATIONS.c.run_id == run.id,
    )


def _before(run: SourceRunRow, actor: Actor, work: UnitOfWork) -> sa.Select[Any]:
    """The records as they were, as `update_from` takes them, but the ones that changed since."""
    held_rows = _held(run)
    old, new = held_rows.c.old, held_rows.c.new
    created = held_rows.c.kind == ChangeKind.CREATED.value
    updated = held_rows.c.kind == ChangeKind.UPDATED.value
    named = sa.select(sa.func.jsonb_object_keys(old.op("||")(new))).correlate(held_rows)
    keys = sa.func.array(named.scalar_subquery(), type_=sa.ARRAY(sa.Text))
    kind = sa.case(
        (created, ChangeKind.DELETED.value),
        (updated, ChangeKind.UPDATED.value),
        else_=ChangeKind.RESTORED.value,
    )
    title = sa.func.coalesce(old.op("->>")(TITLE_KEY), held_rows.c.title)
    others = held_rows.c.data.op("-", return_type=JSONB())(keys)
    data = others.op("||", return_type=JSONB())(
        old.op("-", return_type=JSONB())(sa.literal(TITLE_KEY, sa.Text))
    )
    archived = sa.case((created, held_rows.c.archived), else_=sa.literal(False, sa.Boolean))
    deleted_at = sa.case((created, sa.literal(work.now, Timestamp)), else_=sa.null())
    return sa.select(
        *creation_columns(held_rows),
        sa.cast(sa.null(), sa.ARRAY(sa.Text)).label("omitted"),
        kind.label("kind"),
        _where(updated, new).label("before"),
        _where(updated, old).label("after"),
        sa.case((updated, title), else_=held_rows.c.title).label("title"),
        sa.case((updated, data), else_=held_rows.c.data).label("data"),
        archived.label("archived"),
        sa.literal(actor.user_id, sa.Uuid).label("updated_by_user_id"),
        sa.literal(work.now, Timestamp).label("updated_at"),
        deleted_at.label("deleted_at"),
    )


def _held(run: SourceRunRow) -> sa.Subquery:
    """The records without a change since, with the values of the run's change."""
    # A creation that is not written is later than nothing.
    change = CHANGES_WITH_CREATIONS.c
    later = CHANGE.id.table.alias("later")
    changed_since = sa.exists().where(
        later.c.workspace_id == change.workspace_id,
        later.c.record_id == change.record_id,
        later.c.id > change.id,
    )
    empty = sa.literal({}, JSONB)
    return held_records(
        RECORD.id.table,
        *(*_made_by(run), ~changed_since, change.omitted_keys.is_(None)),
        beside={
            "kind": change.kind,
            "old": sa.func.coalesce(change.before, empty),
            "new": sa.func.coalesce(change.after, empty),
        },
    )


def _where(
    condition: sa.ColumnElement[bool], values: sa.ColumnElement[Any]
) -> sa.ColumnElement[Any]:
    return sa.case((condition, values), else_=sa.cast(sa.null(), JSONB))

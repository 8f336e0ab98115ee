"""Applying the staged rows of a run: in one transaction, so that no reader sees half of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, insert

from models.core.access.rules import Actor
from models.core.repository import counted_id, first_id
from models.data.fields.rules.fields import TITLE_KEY
from models.data.record_changes.rules import ChangeKind
from models.data.records.bulk import derive_where, insert_from, update_from
from models.data.records.queries import RECORD
from models.sources.data_source_runs import comparison
from models.sources.data_source_runs.tables import source_row, staged_row
from models.sources.data_sources.rules import RemovedRows
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp


@dataclass(frozen=True, slots=True)
class Application:
    """The compared rows of a run, who writes them, and the keys of the fields that rows fill.

    `appended` rows are new ones, regardless of earlier rows of the source. A run that `merges`
    leaves what people changed, and remembers what the source said. The rows of another that
    `creates` its database are not remembered: no other run compares with them, and they go with it.
    """

    rows: comparison.Comparison
    actor: Actor
    keys: Sequence[str]
    appended: bool
    creates: bool
    merges: bool = False


async def insert_new(work: UnitOfWork, run: Application, count: int) -> None:
    """Write the rows that are new records; `count` of them."""
    remembers = run.merges or not run.creates
    identity = comparison.identity_by_place(run.rows) if run.appended else staged_row.c.identity
    # Unread columns would be carried from step to step with each row.
    told_by = (identity.label("identity"), staged_row.c.digest, staged_row.c.position)
    new_rows = (
        sa.select(
            counted_id(await first_id(work), staged_row.c.position + 1).label("id"),
            staged_row.c.title,
            staged_row.c.data,
            sa.cast(sa.null(), JSONB).label("links"),
            sa.cast(sa.null(), sa.ARRAY(sa.Text)).label("omitted"),
            sa.cast(sa.null(), sa.Uuid).label("content_surface_id"),
            *(told_by if remembers else ()),
        )
        .where(run.rows.staged, staged_row.c.change.is_(None))
        .order_by(staged_row.c.position)
        .cte("given")
        .prefix_with("MATERIALIZED")
    )
    also = []
    if remembers:
        named = (new_rows.c.identity, new_rows.c.id, new_rows.c.digest)
        also.append(_remembered(run, sa.select(*named), new_rows))
    await insert_from(work, run.actor, run.rows.schema, new_rows, count, also)


async def update_changed(work: UnitOfWork, run: Application, *, found_by_keys: bool) -> int:
    """Write the rows that changed into their records; returns the number of records changed.

    With `found_by_keys` some of the records were no row's before. A field without a value in its
    row is cleared. What a row does not fill stays.
    """
    await _hold(work, run)
    given = _changed(run, work.now).cte("given").prefix_with("MATERIALIZED")
    count = await update_from(work, run.actor, run.rows.schema, given)
    if run.merges:
        await comparison.forget_replaced(work, run.rows)
    await _remember_changed(work, run, found_by_keys=found_by_keys or run.merges)
    return count


async def _remember_changed(work: UnitOfWork, run: Application, *, found_by_keys: bool) -> None:
    """Remember what changed rows say now: known ones are written in place, others inserted."""
    names = ["record_id", "digest", *_content_columns(run)]
    is_known = sa.and_(*run.rows.known, source_row.c.identity == staged_row.c.identity)
    is_changed = sa.and_(run.rows.staged, staged_row.c.change == comparison.UPDATED)
    await work.execute(
        sa.update(source_row)
        .where(is_known, is_changed)
        .values(
            run_id=run.rows.run_id, removed=False, **{name: staged_row.c[name] for name in names}
        )
    )
    if not found_by_keys:
        return
    found = sa.select(staged_row.c.identity, staged_row.c.record_id, staged_row.c.digest)
    unknown = found.where(is_changed, ~sa.exists().where(is_known))
    await work.execute(sa.select(sa.literal(1)).add_cte(_remembered(run, unknown, staged_row)))


def _content_columns(run: Application) -> list[str]:
    """The columns in which a merging run remembers what the source said."""
    return ["position", "title", "data"] if run.merges else []


async def _hold(work: UnitOfWork, run: Application) -> None:
    """Hold the records that rows change, in the order in which all writers hold records."""
    records = (
        sa.select(RECORD.id)
        .join(staged_row, staged_row.c.record_id == RECORD.id)
        .where(*run.rows.records, run.rows.staged, staged_row.c.change == comparison.UPDATED)
        .order_by(RECORD.id)
        # Without the key, so that links to the records can be written meanwhile.
        .with_for_update(key_share=True, of=RECORD.id.table)
        .subquery()
    )
    await work.execute(sa.select(sa.func.count()).select_from(records))


def _changed(run: Application, now: datetime) -> sa.Select[Any]:
    """The rows whose record is not as they say, as `update_from` takes them."""
    titled = TITLE_KEY in run.keys
    title: sa.ColumnElement[str] = staged_row.c.title if titled else RECORD.title
    keys = sa.literal([key for key in run.keys if key != TITLE_KEY], sa.ARRAY(sa.Text))
    archived: sa.ColumnElement[bool] = sa.literal(False, sa.Boolean)
    data: sa.ColumnElement[Any] = staged_row.c.data
    rows: sa.FromClause = staged_row.join(
        RECORD.id.table, sa.and_(*run.rows.records, RECORD.id == staged_row.c.record_id)
    )
    if run.merges:
        merged = _merged(keys)
        rows = rows.join(source_row, sa.and_(*run.rows.known, source_row.c.record_id == RECORD.id))
        rows, data = rows.join(merged, sa.true()), merged.c.data
        title = comparison.unless_changed(RECORD.title, source_row.c.title, title)
        archived = sa.and_(RECORD.archived, source_row.c.removed.is_(False))
    kept_keys, renamed = _kept_keys(keys, data), RECORD.title != title
    before, after = [
        values.op("-", return_type=JSONB())(kept_keys.c.listed) for values in (RECORD.data, data)
    ]
    return (
        sa.select(
            RECORD.id,
            sa.cast(sa.null(), sa.ARRAY(sa.Text)).label("omitted"),
            sa.literal(ChangeKind.UPDATED.value, sa.Text).label("kind"),
            _with_title(before, renamed, RECORD.title).label("before"),
            _with_title(after, renamed, title).label("after"),
            title.label("title"),
            data.label("data"),
            keys.label("cleared"),
            archived.label("archived"),
            sa.literal(run.actor.user_id, sa.Uuid).label("updated_by_user_id"),
            sa.literal(now, Timestamp).label("updated_at"),
            sa.cast(sa.null(), Timestamp).label("deleted_at"),
        )
        .select_from(rows.join(kept_keys, sa.true()))
        .where(
            run.rows.staged,
            staged_row.c.change == comparison.UPDATED,
            sa.or_(renamed, RECORD.archived != archived, before != _NOTHING, after != _NOTHING),
        )
    )


_NOTHING = sa.literal({}, JSONB)


def _kept_keys(keys: sa.ColumnElement[Any], data: sa.ColumnElement[Any]) -> sa.FromClause:
    """The `keys` of a record whose values stay: they are in `data` too, or no row fills them."""
    every = sa.func.jsonb_object_keys(RECORD.data).table_valued("key").render_derived("every").c.key
    stays = sa.or_(every != sa.all_(keys), RECORD.data[every] == data[every])
    found = sa.func.coalesce(
        sa.func.array_agg(every, type_=sa.ARRAY(sa.Text)), sa.literal([], sa.ARRAY(sa.Text))
    )
    return sa.select(found.label("listed")).where(stays).lateral("kept_keys")


def _merged(keys: sa.ColumnElement[Any]) -> sa.FromClause:
    """The values of these keys as the source says them, but for what people changed."""
    key = sa.func.unnest(keys).table_valued("key").render_derived("filled").c.key
    value = comparison.unless_changed(
        RECORD.data[key], source_row.c.data[key], staged_row.c.data[key]
    )
    collected = sa.func.jsonb_object_agg(key, value, type_=JSONB).filter(value.is_not(None))
    return sa.select(sa.func.coalesce(collected, _NOTHING).label("data")).lateral("merged")


def _with_title(
    values: sa.ColumnElement[Any], renamed: sa.ColumnElement[bool], title: sa.ColumnElement[str]
) -> sa.ColumnElement[Any]:
    named = sa.func.jsonb_build_object(TITLE_KEY, title, type_=JSONB)
    return values.op("||", return_type=JSONB())(sa.case((renamed, named), else_=_NOTHING))


def _remembered(run: Application, found: sa.Select[Any], incoming: sa.FromClause) -> sa.CTE:
    """The insertion of rows of the source with their records; `incoming` has their values."""
    identity, record_id, digest = found.selected_columns
    columns = ["workspace_id", "source_id", "identity", "record_id", "digest", "run_id", "removed"]
    rows, content_columns = run.rows, _content_columns(run)
    selected = found.with_only_columns(
        sa.literal(rows.schema.workspace_id, sa.Uuid),
        sa.literal(rows.source_id, sa.Uuid),
        identity,
        record_id,
        digest,
        sa.literal(rows.run_id, sa.Uuid),
        sa.literal(False, sa.Boolean),
        *(incoming.c[name] for name in content_columns),
    )
    inserted = insert(source_row).from_select([*columns, *content_columns], selected)
    return inserted.on_conflict_do_update(
        index_elements=["workspace_id", "source_id", "identity"],
        set_={
            name: inserted.excluded[name]
            for name in ("record_id", "digest", "run_id", "removed", *content_columns)
        },
    ).cte("known")


async def remove_gone(
    work: UnitOfWork, run: Application, selection: sa.Select[Any], policy: RemovedRows
) -> int:
    """Archive or delete the records of rows that the source has no more; returns their number."""
    if policy is RemovedRows.KEEP:
        return 0
    deleted = policy is RemovedRows.DELETE
    kind = ChangeKind.DELETED if deleted else ChangeKind.ARCHIVED
    targets = selection.subquery("gone")
    changes = (
        sa.select(
            RECORD.id,
            sa.cast(sa.null(), sa.ARRAY(sa.Text)).label("omitted"),
            sa.literal(kind.value, sa.Text).label("kind"),
            sa.cast(sa.null(), JSONB).label("before"),
            sa.cast(sa.null(), JSONB).label("after"),
            RECORD.title,
            sa.literal({}, JSONB).label("data"),
            sa.literal([], sa.ARRAY(sa.Text)).label("cleared"),
            sa.literal(True, sa.Boolean).label("archived") if not deleted else RECORD.archived,
            sa.literal(run.actor.user_id, sa.Uuid).label("updated_by_user_id"),
            sa.literal(work.now, Timestamp).label("updated_at"),
            (sa.literal(work.now, Timestamp) if deleted else sa.cast(sa.null(), Timestamp)).label(
                "deleted_at"
            ),
        )
        .join(targets, targets.c.record_id == RECORD.id)
        .where(*run.rows.records)
        .cte("given")
        .prefix_with("MATERIALIZED")
    )
    marks = (
        sa.update(source_row)
        .where(*run.rows.known, source_row.c.record_id == changes.c.id)
        .values(removed=True, run_id=run.rows.run_id)
        .cte("removed")
    )
    return await update_from(work, run.actor, run.rows.schema, changes, also=[marks])


async def derive(work: UnitOfWork, run: Application) -> None:
    """Bring up to date what is derived from the records that the run wrote."""
    wrote = sa.select(source_row.c.record_id).where(
        *run.rows.known, source_row.c.run_id == run.rows.run_id
    )
    these = sa.true() if run.creates else RECORD.id.in_(wrote)
    await derive_where(work, run.rows.schema, these)

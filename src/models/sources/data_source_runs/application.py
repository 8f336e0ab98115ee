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
from models.data.records.rows import CREATION, creation_columns, held_records
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
    row is cleared. What a row does not fill stays. The same statement remembers what known rows
    say now.
    """
    described_rows = _record_contents(run, work.now).cte("said").prefix_with("MATERIALIZED")
    given_rows = (
        sa.select(described_rows)
        .where(described_rows.c.differs)
        .cte("given")
        .prefix_with("NOT MATERIALIZED")
    )
    remembered = (
        sa.update(source_row)
        .where(*run.rows.known, source_row.c.identity == described_rows.c.identity)
        .values(
            record_id=described_rows.c.id,
            run_id=run.rows.run_id,
            removed=False,
            **{
                name.removeprefix("said_"): described_rows.c[name]
                for name in _remembered_columns(run)
            },
        )
        .cte("remembered")
    )
    count = await update_from(work, run.actor, run.rows.schema, given_rows, also=[remembered])
    if run.merges:
        await comparison.forget_replaced(work, run.rows)
    if found_by_keys or run.merges:
        await _remember_found(work, run)
    return count


async def _remember_found(work: UnitOfWork, run: Application) -> None:
    """Remember the changed rows that the source did not have."""
    found = sa.select(staged_row.c.identity, staged_row.c.record_id, staged_row.c.digest).where(
        run.rows.staged,
        staged_row.c.change == comparison.UPDATED,
        ~sa.exists().where(*run.rows.known, source_row.c.identity == staged_row.c.identity),
    )
    await work.execute(sa.select(sa.literal(1)).add_cte(_remembered(run, found, staged_row)))


def _remembered_columns(run: Application) -> list[str]:
    """The columns of `_record_contents` that are remembered."""
    return [f"said_{name}" for name in ("digest", *_content_columns(run))]


def _content_columns(run: Application) -> list[str]:
    """The columns in which a merging run remembers what the source said."""
    return ["position", "title", "data"] if run.merges else []


def _record_contents(run: Application, now: datetime) -> sa.Select[Any]:
    """The content that changed rows have for their records, as `update_from` takes it.

    A record that `differs` from it is changed.
    """
    compared_rows = _compared_values(run)
    renamed = compared_rows.c.old_title != compared_rows.c.title
    before, after = [
        values.op("-", return_type=JSONB())(compared_rows.c.same)
        for values in (compared_rows.c.old, compared_rows.c.filled)
    ]
    return sa.select(
        *(
            compared_rows.c[name]
            for name in (*CREATION, "created", "identity", *_remembered_columns(run))
        ),
        sa.or_(
            renamed,
            compared_rows.c.was_archived != compared_rows.c.archived,
            compared_rows.c.old != compared_rows.c.data,
        ).label("differs"),
        sa.cast(sa.null(), sa.ARRAY(sa.Text)).label("omitted"),
        sa.literal(ChangeKind.UPDATED.value, sa.Text).label("kind"),
        _with_title(before, renamed, compared_rows.c.old_title).label("before"),
        _with_title(after, renamed, compared_rows.c.title).label("after"),
        compared_rows.c.title,
        compared_rows.c.data,
        compared_rows.c.archived,
        sa.literal(run.actor.user_id, sa.Uuid).label("updated_by_user_id"),
        sa.literal(now, Timestamp).label("updated_at"),
        sa.cast(sa.null(), Timestamp).label("deleted_at"),
    )


def _compared_values(run: Application) -> sa.Subquery:
    """The records of changed rows, as they are and as the rows say; `filled` are values of these.

    The values of the keys in `same` stay. Columns that are used twice are computed once: PostgreSQL
    merges no query with an offset into the one around it.
    """
    held_rows = _records_to_change(run)
    keys = sa.literal([key for key in run.keys if key != TITLE_KEY], sa.ARRAY(sa.Text))
    title: sa.ColumnElement[str] = (
        held_rows.c.said_title if TITLE_KEY in run.keys else held_rows.c.title
    )
    filled: sa.ColumnElement[Any] = held_rows.c.said_data
    archived: sa.ColumnElement[bool] = sa.literal(False, sa.Boolean)
    rows: sa.FromClause = held_rows
    if run.merges:
        merged = _merged(held_rows, keys)
        rows, filled = held_rows.join(merged, sa.true()), merged.c.data
        title = comparison.unless_changed(held_rows.c.title, held_rows.c.last_title, title)
        archived = sa.and_(held_rows.c.archived, held_rows.c.removed.is_(False))
    other_values = held_rows.c.data.op("-", return_type=JSONB())(keys)
    now = (
        sa.select(
            *creation_columns(held_rows),
            held_rows.c.identity,
            *(held_rows.c[name] for name in _remembered_columns(run)),
            held_rows.c.title.label("old_title"),
            held_rows.c.data.label("old"),
            held_rows.c.archived.label("was_archived"),
            title.label("title"),
            filled.label("filled"),
            other_values.op("||", return_type=JSONB())(filled).label("data"),
            archived.label("archived"),
        )
        .select_from(rows)
        .offset(_NONE)
        .subquery("now")
    )
    key = sa.func.jsonb_object_keys(now.c.old).table_valued("key").render_derived("every").c.key
    stays = now.c.old.op("->")(key) == now.c.data.op("->")(key)
    same = sa.func.array(
        sa.select(key).where(stays).correlate(now).scalar_subquery(), type_=sa.ARRAY(sa.Text)
    )
    return sa.select(now, same.label("same")).offset(_NONE).subquery("told")


_NONE: sa.ColumnElement[int] = sa.literal_column("0")


def _records_to_change(run: Application) -> sa.Subquery:
    """The records of changed rows, with what the source says of them and what it said last."""
    rows: sa.FromClause = staged_row.join(
        RECORD.id.table, sa.and_(*run.rows.records, RECORD.id == staged_row.c.record_id)
    )
    beside = {
        f"said_{name}": staged_row.c[name] for name in ("digest", "position", "title", "data")
    }
    beside["identity"] = staged_row.c.identity
    if run.merges:
        rows = rows.join(source_row, sa.and_(*run.rows.known, source_row.c.record_id == RECORD.id))
        beside |= {"last_title": source_row.c.title, "last_data": source_row.c.data}
        beside["removed"] = source_row.c.removed
    is_changed = (run.rows.staged, staged_row.c.change == comparison.UPDATED)
    return held_records(rows, *is_changed, beside=beside)


_NOTHING = sa.literal({}, JSONB)


def _merged(held_rows: sa.Subquery, keys: sa.ColumnElement[Any]) -> sa.FromClause:
    """The values of these keys as the source says them, but for what people changed."""
    key = sa.func.unnest(keys).table_valued("key").render_derived("filled").c.key
    value = comparison.unless_changed(
        held_rows.c.data[key], held_rows.c.last_data[key], held_rows.c.said_data[key]
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
    rows = targets.join(RECORD.id.table, RECORD.id == targets.c.record_id)
    held_rows = held_records(rows, *run.rows.records, beside={})
    changes = (
        sa.select(
            *creation_columns(held_rows),
            sa.cast(sa.null(), sa.ARRAY(sa.Text)).label("omitted"),
            sa.literal(kind.value, sa.Text).label("kind"),
            sa.cast(sa.null(), JSONB).label("before"),
            sa.cast(sa.null(), JSONB).label("after"),
            held_rows.c.title,
            held_rows.c.data,
            held_rows.c.archived if deleted else sa.literal(True, sa.Boolean).label("archived"),
            sa.literal(run.actor.user_id, sa.Uuid).label("updated_by_user_id"),
            sa.literal(work.now, Timestamp).label("updated_at"),
            (sa.literal(work.now, Timestamp) if deleted else sa.cast(sa.null(), Timestamp)).label(
                "deleted_at"
            ),
        )
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

"""Refreshing what an import brought in, and leaving what people changed there.

A value that is not as the source said it last was changed by people, and stays; so does a record
that people changed when its row is gone. Rows have no keys of their own: one that changed at the
source is known again by its title, where that names one row, else by its place, where title or
values are what they were.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    delete,
    exists,
    false,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.data.fields.rules.kinds import TITLE_KEY
from models.data.records.queries.records import RECORD
from models.sources.data_source_runs.commands.comparison import (
    SKIPPED,
    UNCHANGED,
    UPDATED,
    Comparison,
    count_rows,
    gone_rows,
)
from models.sources.data_source_runs.tables import source_row, staged_row
from runtime.database import UnitOfWork


def unless_changed(
    now: ColumnElement[Any], before: ColumnElement[Any], incoming: ColumnElement[Any]
) -> ColumnElement[Any]:
    """The incoming value, or the value that people made of the one before."""
    return case((now.is_distinct_from(before), now), else_=incoming)


async def match_changed(work: UnitOfWork, rows: Comparison, keys: Sequence[str]) -> int:
    """Find the records of rows that changed at the source.

    Gives how many records keep something that the source says otherwise now. Rows that are as they
    were follow their positions.
    """
    await _match_titles(work, rows)
    await _match_places(work, rows)
    await work.execute(
        update(source_row)
        .where(
            *rows.known,
            rows.staged,
            staged_row.c.change == UNCHANGED,
            staged_row.c.identity == source_row.c.identity,
            staged_row.c.position != source_row.c.position,
        )
        .values(position=staged_row.c.position)
    )
    return await _count_kept(work, rows, keys)


async def _match_titles(work: UnitOfWork, rows: Comparison) -> None:
    """Pair rows that nothing else has, by titles that name one row on either side."""
    source_titles = (
        select(
            source_row.c.title,
            cast(func.min(cast(source_row.c.record_id, Text)), Uuid).label("record_id"),
        )
        .where(*rows.known, _free(rows), source_row.c.title != "")
        .group_by(source_row.c.title)
        .having(func.count() == 1)
        .subquery()
    )
    staged = (
        select(staged_row.c.title, func.min(staged_row.c.position).label("position"))
        .where(rows.staged, staged_row.c.change.is_(None))
        .group_by(staged_row.c.title)
        .having(func.count() == 1)
        .subquery()
    )
    paired = and_(
        staged_row.c.position == staged.c.position, staged.c.title == source_titles.c.title
    )
    await _pair(work, rows, paired, source_titles.c.record_id)


async def _match_places(work: UnitOfWork, rows: Comparison) -> None:
    """Pair rows that nothing else has in the same place, when title or values are the same."""
    unfilled = literal(list(rows.unfilled), ARRAY(Text))
    said_before = source_row.c.data.op("-", return_type=JSONB())(unfilled)
    paired = and_(
        *rows.known,
        _free(rows),
        source_row.c.removed.is_(False),
        source_row.c.position == staged_row.c.position,
        or_(source_row.c.title == staged_row.c.title, said_before == staged_row.c.data),
    )
    await _pair(work, rows, paired, source_row.c.record_id)


def _free(rows: Comparison) -> ColumnElement[bool]:
    taken = staged_row.alias("taken")
    return ~exists().where(
        taken.c.run_id == rows.run_id, taken.c.record_id == source_row.c.record_id
    )


async def _pair(
    work: UnitOfWork, rows: Comparison, paired: ColumnElement[bool], record_id: ColumnElement[Any]
) -> None:
    """Give staged rows their records; what people deleted stays in the trash."""
    await work.execute(
        update(staged_row)
        .where(
            rows.staged,
            staged_row.c.change.is_(None),
            paired,
            RECORD.workspace_id == rows.schema.workspace_id,
            RECORD.database_id == rows.schema.database_id,
            RECORD.id == record_id,
        )
        .values(
            record_id=record_id,
            change=case((RECORD.deleted_at.is_not(None), SKIPPED), else_=UPDATED),
        )
    )


async def keep_unfilled(work: UnitOfWork, rows: Comparison) -> None:
    """Have changed rows remember what the source said last of the fields it no longer fills."""
    keys = literal(list(rows.unfilled), ARRAY(Text))
    every = func.jsonb_each(source_row.c.data).table_valued("key", "value").render_derived("every")
    collected = func.jsonb_object_agg(every.c.key, every.c.value, type_=JSONB)
    said = select(func.coalesce(collected, literal({}, JSONB))).where(every.c.key == any_(keys))
    columns: dict[str, Any] = {
        "data": said.scalar_subquery().op("||", return_type=JSONB())(staged_row.c.data)
    }
    if TITLE_KEY in rows.unfilled:
        columns["title"] = source_row.c.title
    await work.execute(
        update(staged_row)
        .where(
            *rows.known,
            rows.staged,
            staged_row.c.change == UPDATED,
            staged_row.c.record_id == source_row.c.record_id,
        )
        .values(columns)
    )


async def _count_kept(work: UnitOfWork, rows: Comparison, keys: Sequence[str]) -> int:
    """Records with a value of people's that the source now says otherwise, or says no more."""
    gone_count = await count_rows(
        work, gone_rows(rows).where(~_untouched(keys), RECORD.archived.is_(False))
    )
    deleted = select(staged_row.c.position).where(rows.staged, staged_row.c.change == SKIPPED)
    contested_rows = (
        select(staged_row.c.position)
        .join(RECORD.id.table, and_(*rows.records, RECORD.id == staged_row.c.record_id))
        .join(source_row, and_(*rows.known, source_row.c.record_id == RECORD.id))
        .where(rows.staged, staged_row.c.change == UPDATED, _contested(keys))
    )
    return gone_count + await count_rows(work, deleted) + await count_rows(work, contested_rows)


def _contested(keys: Sequence[str]) -> ColumnElement[bool]:
    titled: ColumnElement[bool] = false()
    if TITLE_KEY in keys:
        titled = _is_contested(RECORD.title, source_row.c.title, staged_row.c.title)
    filled = literal([key for key in keys if key != TITLE_KEY], ARRAY(Text))
    key = func.unnest(filled).table_valued("key").render_derived("filled").c.key
    values = (RECORD.data[key], source_row.c.data[key], staged_row.c.data[key])
    return or_(titled, select(key).where(_is_contested(*values)).exists())


def _is_contested(
    now: ColumnElement[Any], before: ColumnElement[Any], incoming: ColumnElement[Any]
) -> ColumnElement[bool]:
    return and_(
        now.is_distinct_from(before),
        incoming.is_distinct_from(before),
        incoming.is_distinct_from(now),
    )


def gone_untouched(rows: Comparison, keys: Sequence[str]) -> Select[Any]:
    """The records of rows that are gone, as `record_id`s, where nobody changed them."""
    return gone_rows(rows).where(_untouched(keys), RECORD.archived.is_(False))


def _untouched(keys: Sequence[str]) -> ColumnElement[bool]:
    """True when a record is as the source said last; fields people removed do not count."""
    filled = literal(dict.fromkeys(keys), JSONB)
    every = func.jsonb_object_keys(filled.op("||", return_type=JSONB())(RECORD.data))
    key = every.table_valued("key").render_derived("every").c.key
    differs = RECORD.data[key].is_distinct_from(source_row.c.data[key])
    return and_(RECORD.title == source_row.c.title, ~select(key).where(differs).exists())


async def forget_replaced(work: UnitOfWork, rows: Comparison) -> None:
    """Forget the identities of known rows whose records now belong to changed rows."""
    await work.execute(
        delete(source_row).where(
            *rows.known,
            rows.staged,
            staged_row.c.change == UPDATED,
            staged_row.c.record_id == source_row.c.record_id,
            staged_row.c.identity != source_row.c.identity,
        )
    )

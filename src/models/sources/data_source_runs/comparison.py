"""Comparing staged rows with those before: new, changed, unchanged, gone, or changed by people.

Each question is one statement, so that a million rows are compared where they are. It reads only
what the run has staged, what its source had and the records of its target.

A value that is not as the source said it last was changed by people, and stays; so does a record
that people changed when its row is gone.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB, distinct_on

from models.core.base import Id, JsonObject
from models.data.fields.rules.fields import TITLE_KEY, Schema
from models.data.records.queries import RECORD, records_of
from models.data.records.upserts import equal_values, same_text
from models.sources.data_source_runs.tables import source_row, staged_row
from runtime.database import UnitOfWork

_JOIN_MEMORY = "64MB"

SKIPPED, UNCHANGED, UPDATED = "skipped", "unchanged", "updated"
"""The changes of staged rows that are no new records."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of one run, and the source that they are compared with.

    The source filled the fields `unfilled` before, and does not now. With `anew` no row counts as
    unchanged: a field is another than the one that the source filled.
    """

    schema: Schema
    run_id: Id
    source_id: Id
    unfilled: Sequence[str] = ()
    anew: bool = False

    @property
    def staged(self) -> sa.ColumnElement[bool]:
        return staged_row.c.run_id == self.run_id

    @property
    def known(self) -> tuple[sa.ColumnElement[bool], ...]:
        """The rows that the source had."""
        return (
            source_row.c.workspace_id == self.schema.workspace_id,
            source_row.c.source_id == self.source_id,
        )

    @property
    def records(self) -> tuple[sa.ColumnElement[bool], ...]:
        """The records of the target outside the trash."""
        return (
            RECORD.workspace_id == self.schema.workspace_id,
            RECORD.database_id == self.schema.database_id,
            RECORD.deleted_at.is_(None),
        )


@asynccontextmanager
async def joining_sets(work: UnitOfWork) -> AsyncIterator[None]:
    """Have statements read each side of a join once, and not one side for each row of the other.

    PostgreSQL has no statistics of rows that were written a moment ago, and takes them for a few.
    Of each table they read what its index says is theirs: the rest of it may be large, and dead.
    """
    chosen = {"enable_nestloop": "off", "enable_seqscan": "off", "work_mem": _JOIN_MEMORY}
    settings = [sa.func.set_config(name, value, True) for name, value in chosen.items()]
    await work.execute(sa.select(*settings))
    yield
    for name in chosen:
        await work.execute(sa.text(f"SET LOCAL {name} TO DEFAULT"))


async def make_unique(work: UnitOfWork, rows: Comparison, *, keyed: bool) -> None:
    """Give every row an identity of its own.

    Of rows with the same keys the last one counts. Without keys, equal rows are numbered.
    """
    place = staged_row.c.position
    order = place.desc() if keyed else place
    numbered = (
        sa.select(
            place,
            sa.func.row_number()
            .over(partition_by=staged_row.c.identity, order_by=order)
            .label("nth"),
        )
        .where(rows.staged)
        .subquery()
    )
    nth = sa.func.int8send(sa.cast(numbered.c.nth, sa.BigInteger))
    told_apart: dict[str, Any] = {"identity": sa.func.sha256(staged_row.c.identity.concat(nth))}
    await work.execute(
        sa.update(staged_row)
        .where(rows.staged, place == numbered.c.position, numbered.c.nth > 1)
        .values({"change": SKIPPED} if keyed else told_apart)
    )


def identity_by_place(rows: Comparison) -> sa.ColumnElement[bytes]:
    """Makes every row a new one, for rows that are appended."""
    place = sa.func.int8send(staged_row.c.position)
    identity: sa.ColumnElement[bytes] = sa.func.sha256(sa.func.uuid_send(rows.run_id).concat(place))
    return identity


async def match_known(work: UnitOfWork, rows: Comparison) -> int:
    """Find the record of every row that the source had; one in the trash stays there.

    Returns the number of rows of the source.
    """
    unchanged = sa.and_(source_row.c.digest == staged_row.c.digest, source_row.c.removed.is_(False))
    if rows.anew:
        unchanged = sa.false()
    matched = await work.execute(
        sa.update(staged_row)
        .where(
            rows.staged,
            *rows.known,
            source_row.c.identity == staged_row.c.identity,
            RECORD.workspace_id == source_row.c.workspace_id,
            RECORD.database_id == rows.schema.database_id,
            RECORD.id == source_row.c.record_id,
            staged_row.c.change.is_(None),
        )
        .values(
            record_id=source_row.c.record_id,
            change=sa.case(
                (RECORD.deleted_at.is_not(None), SKIPPED), (unchanged, UNCHANGED), else_=UPDATED
            ),
        )
    )
    return matched.rowcount


async def match_keys(work: UnitOfWork, rows: Comparison, keys: Sequence[str]) -> None:
    """Find records with the values of the key fields, wherever they came from; the oldest counts.

    Of several keys some may be empty, as they are in the record then.

    A record that another row has already is left to that one.
    """
    fields = rows.schema.fields
    staged, other = staged_row.alias("wanted"), staged_row.alias("other")
    is_taken = sa.exists().where(other.c.run_id == rows.run_id, other.c.record_id == RECORD.id)
    matches = (
        sa.select(staged.c.position, sa.func.min(sa.cast(RECORD.id, sa.Text)).label("record_id"))
        .where(
            staged.c.run_id == rows.run_id,
            staged.c.change.is_(None),
            *rows.records,
            ~is_taken,
            *(
                same_text(RECORD.title, staged.c.title)
                if fields[key].title
                else equal_values(fields[key], staged.c.data[key], or_none=len(keys) > 1)
                for key in keys
            ),
        )
        .group_by(staged.c.position)
        .subquery()
    )
    await work.execute(
        sa.update(staged_row)
        .where(rows.staged, staged_row.c.position == matches.c.position)
        .values(record_id=sa.cast(matches.c.record_id, RECORD.id.type), change=UPDATED)
    )


async def count_keyed(
    work: UnitOfWork, schema: Schema, rows: Sequence[JsonObject], keys: Sequence[str]
) -> dict[str, int]:
    """The rows of a preview that are new, change the record with their keys, or leave it as it is.

    Each row has its values by the keys of their fields. Of several records the oldest counts.
    """
    planned = [
        {"place": place, "title": row.get(TITLE_KEY), "data": _without_title(row), "values": row}
        for place, row in enumerate(rows)
    ]
    entry = (
        sa.func.jsonb_to_recordset(sa.cast(sa.literal(to_json(planned).decode(), sa.Text), JSONB))
        .table_valued(
            sa.column("place", sa.Integer),
            sa.column("title", sa.Text),
            sa.column("data", JSONB),
            sa.column("values", JSONB),
        )
        .render_derived(name="entry", with_types=True)
    )
    is_same = RECORD.data.contains(entry.c.data) & (
        RECORD.title == sa.func.coalesce(entry.c.title, RECORD.title)
    )
    matched = (
        sa.select(entry.c.place, is_same.label("is_same"))
        .where(
            *records_of(schema.workspace_id, schema.database_id),
            *_same_keys(schema, entry.c["values"], keys),
        )
        .ext(distinct_on(entry.c.place))
        .order_by(entry.c.place, RECORD.id)
        .subquery()
    )
    counts = await work.first(
        sa.select(
            sa.func.count().label("matched"),
            sa.func.count().filter(matched.c.is_same).label("unchanged"),
        ).select_from(matched)
    )
    assert counts is not None
    updated = counts.matched - counts.unchanged
    return {"new": len(rows) - counts.matched, "updated": updated, "unchanged": counts.unchanged}


def _same_keys(
    schema: Schema, values: sa.ColumnElement[Any], keys: Sequence[str]
) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions for a record with the keys of a row, some of which may be empty."""
    for key in keys:
        yield equal_values(schema.fields[key], values[key], or_none=len(keys) > 1)


def _without_title(row: JsonObject) -> JsonObject:
    return {key: value for key, value in row.items() if key != TITLE_KEY}


def gone_rows(rows: Comparison) -> sa.Select[Any]:
    """The records of rows that the source had and has no more, as `record_id`s.

    A record that another row has now, by the values of its keys, is not gone.
    """
    still = sa.exists().where(rows.staged, staged_row.c.identity == source_row.c.identity)
    is_taken = sa.exists().where(rows.staged, staged_row.c.record_id == source_row.c.record_id)
    return (
        sa.select(source_row.c.record_id)
        .where(
            *rows.known,
            source_row.c.removed.is_(False),
            ~still,
            ~is_taken,
            *rows.records,
            RECORD.id == source_row.c.record_id,
        )
        .distinct()
    )


def other_records(rows: Comparison) -> sa.Select[Any]:
    """The records of the target that no staged row has, as `record_id`s: for a replacement."""
    staged = sa.exists().where(rows.staged, staged_row.c.record_id == RECORD.id)
    return sa.select(RECORD.id.label("record_id")).where(
        *rows.records, RECORD.archived.is_(False), ~staged
    )


async def count_rows(work: UnitOfWork, selected: sa.Select[Any]) -> int:
    """The number of rows a query gives."""
    counted: int = await work.scalar(sa.select(sa.func.count()).select_from(selected.subquery()))
    return counted


async def count_known(work: UnitOfWork, rows: Comparison, *, removed: bool = False) -> int:
    """The number of rows the source had; the removed ones count if asked for."""
    known = sa.select(sa.literal(1)).where(*rows.known)
    if not removed:
        known = known.where(source_row.c.removed.is_(False))
    return await count_rows(work, known)


async def count_changes(work: UnitOfWork, rows: Comparison) -> dict[str | None, int]:
    """The number of staged rows of each change; None stands for new records."""
    counted = await work.rows(
        sa.select(staged_row.c.change, sa.func.count().label("times"))
        .where(rows.staged)
        .group_by(staged_row.c.change)
    )
    return {row.change: row.times for row in counted}


def unless_changed(
    now: sa.ColumnElement[Any], before: sa.ColumnElement[Any], incoming: sa.ColumnElement[Any]
) -> sa.ColumnElement[Any]:
    """The incoming value, or the value that people made of the one before."""
    return sa.case((now.is_distinct_from(before), now), else_=incoming)


async def match_changed(work: UnitOfWork, rows: Comparison, keys: Sequence[str]) -> int:
    """Find the records of rows that changed at the source.

    Returns the number of records that keep what the source now says otherwise. Rows that are as
    they were follow their positions.

    Rows have no keys of their own: one that changed at the source is known again by its title,
    where that names one row, else by its place, where title or values are what they were.
    """
    await _match_titles(work, rows)
    await _match_places(work, rows)
    await work.execute(
        sa.update(source_row)
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
        sa.select(
            source_row.c.title,
            sa.cast(sa.func.min(sa.cast(source_row.c.record_id, sa.Text)), sa.Uuid).label(
                "record_id"
            ),
        )
        .where(*rows.known, _free(rows), source_row.c.title != "")
        .group_by(source_row.c.title)
        .having(sa.func.count() == 1)
        .subquery()
    )
    staged = (
        sa.select(staged_row.c.title, sa.func.min(staged_row.c.position).label("position"))
        .where(rows.staged, staged_row.c.change.is_(None))
        .group_by(staged_row.c.title)
        .having(sa.func.count() == 1)
        .subquery()
    )
    paired = sa.and_(
        staged_row.c.position == staged.c.position, staged.c.title == source_titles.c.title
    )
    await _pair(work, rows, paired, source_titles.c.record_id)


async def _match_places(work: UnitOfWork, rows: Comparison) -> None:
    """Pair rows that nothing else has in the same place, when title or values are the same."""
    unfilled = sa.literal(list(rows.unfilled), sa.ARRAY(sa.Text))
    said_before = source_row.c.data.op("-", return_type=JSONB())(unfilled)
    paired = sa.and_(
        *rows.known,
        _free(rows),
        source_row.c.removed.is_(False),
        source_row.c.position == staged_row.c.position,
        sa.or_(source_row.c.title == staged_row.c.title, said_before == staged_row.c.data),
    )
    await _pair(work, rows, paired, source_row.c.record_id)


def _free(rows: Comparison) -> sa.ColumnElement[bool]:
    taken = staged_row.alias("taken")
    return ~sa.exists().where(
        taken.c.run_id == rows.run_id, taken.c.record_id == source_row.c.record_id
    )


async def _pair(
    work: UnitOfWork,
    rows: Comparison,
    paired: sa.ColumnElement[bool],
    record_id: sa.ColumnElement[Any],
) -> None:
    """Give staged rows their records; what people deleted stays in the trash."""
    await work.execute(
        sa.update(staged_row)
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
            change=sa.case((RECORD.deleted_at.is_not(None), SKIPPED), else_=UPDATED),
        )
    )


async def keep_unfilled(work: UnitOfWork, rows: Comparison) -> None:
    """Have changed rows remember what the source said last of the fields it no longer fills."""
    keys = sa.literal(list(rows.unfilled), sa.ARRAY(sa.Text))
    every = (
        sa.func.jsonb_each(source_row.c.data).table_valued("key", "value").render_derived("every")
    )
    collected = sa.func.jsonb_object_agg(every.c.key, every.c.value, type_=JSONB)
    said = sa.select(sa.func.coalesce(collected, sa.literal({}, JSONB))).where(
        every.c.key == sa.any_(keys)
    )
    columns: dict[str, Any] = {
        "data": said.scalar_subquery().op("||", return_type=JSONB())(staged_row.c.data)
    }
    if TITLE_KEY in rows.unfilled:
        columns["title"] = source_row.c.title
    await work.execute(
        sa.update(staged_row)
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
    deleted = sa.select(staged_row.c.position).where(rows.staged, staged_row.c.change == SKIPPED)
    contested_rows = (
        sa.select(staged_row.c.position)
        .join(RECORD.id.table, sa.and_(*rows.records, RECORD.id == staged_row.c.record_id))
        .join(source_row, sa.and_(*rows.known, source_row.c.record_id == RECORD.id))
        .where(rows.staged, staged_row.c.change == UPDATED, _contested(keys))
    )
    return gone_count + await count_rows(work, deleted) + await count_rows(work, contested_rows)


def _contested(keys: Sequence[str]) -> sa.ColumnElement[bool]:
    titled: sa.ColumnElement[bool] = sa.false()
    if TITLE_KEY in keys:
        titled = _is_contested(RECORD.title, source_row.c.title, staged_row.c.title)
    filled = sa.literal([key for key in keys if key != TITLE_KEY], sa.ARRAY(sa.Text))
    key = sa.func.unnest(filled).table_valued("key").render_derived("filled").c.key
    values = (RECORD.data[key], source_row.c.data[key], staged_row.c.data[key])
    return sa.or_(titled, sa.select(key).where(_is_contested(*values)).exists())


def _is_contested(
    now: sa.ColumnElement[Any], before: sa.ColumnElement[Any], incoming: sa.ColumnElement[Any]
) -> sa.ColumnElement[bool]:
    return sa.and_(
        now.is_distinct_from(before),
        incoming.is_distinct_from(before),
        incoming.is_distinct_from(now),
    )


def gone_untouched(rows: Comparison, keys: Sequence[str]) -> sa.Select[Any]:
    """The records of removed rows, as `record_id`s, where no member changed them."""
    return gone_rows(rows).where(_untouched(keys), RECORD.archived.is_(False))


def _untouched(keys: Sequence[str]) -> sa.ColumnElement[bool]:
    """True when a record is as the source said last; fields people removed do not count."""
    filled = sa.literal(dict.fromkeys(keys), JSONB)
    every = sa.func.jsonb_object_keys(filled.op("||", return_type=JSONB())(RECORD.data))
    key = every.table_valued("key").render_derived("every").c.key
    differs = RECORD.data[key].is_distinct_from(source_row.c.data[key])
    return sa.and_(RECORD.title == source_row.c.title, ~sa.select(key).where(differs).exists())


async def forget_replaced(work: UnitOfWork, rows: Comparison) -> None:
    """Forget the identities of known rows whose records now belong to changed rows."""
    await work.execute(
        sa.delete(source_row).where(
            *rows.known,
            rows.staged,
            staged_row.c.change == UPDATED,
            staged_row.c.record_id == source_row.c.record_id,
            staged_row.c.identity != source_row.c.identity,
        )
    )

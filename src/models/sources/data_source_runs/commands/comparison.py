"""Comparing staged rows with what the source had before: new, changed, unchanged, gone.

One statement for each question, so that a million rows are compared where they are. Each reads only
what the run has staged, what its source had and the records of its target.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Text,
    and_,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    select,
    text,
    update,
)

from models.core.base import Id
from models.data.fields.rules.fields import Schema
from models.data.records.commands.upsert import equal_values
from models.data.records.queries.records import RECORD
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
    def staged(self) -> ColumnElement[bool]:
        return staged_row.c.run_id == self.run_id

    @property
    def known(self) -> tuple[ColumnElement[bool], ...]:
        """The rows that the source had."""
        return (
            source_row.c.workspace_id == self.schema.workspace_id,
            source_row.c.source_id == self.source_id,
        )

    @property
    def records(self) -> tuple[ColumnElement[bool], ...]:
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
    settings = [func.set_config(name, value, True) for name, value in chosen.items()]
    await work.execute(select(*settings))
    yield
    for name in chosen:
        await work.execute(text(f"SET LOCAL {name} TO DEFAULT"))


async def make_unique(work: UnitOfWork, rows: Comparison, *, keyed: bool) -> None:
    """Give every row an identity of its own.

    Of rows with the same keys the last one counts. Without keys, equal rows are told apart by how
    many came before.
    """
    place = staged_row.c.position
    order = place.desc() if keyed else place
    numbered = (
        select(
            place,
            func.row_number().over(partition_by=staged_row.c.identity, order_by=order).label("nth"),
        )
        .where(rows.staged)
        .subquery()
    )
    nth = func.int8send(cast(numbered.c.nth, BigInteger))
    told_apart: dict[str, Any] = {"identity": func.sha256(staged_row.c.identity.concat(nth))}
    await work.execute(
        update(staged_row)
        .where(rows.staged, place == numbered.c.position, numbered.c.nth > 1)
        .values({"change": SKIPPED} if keyed else told_apart)
    )


def identity_by_place(rows: Comparison) -> ColumnElement[bytes]:
    """Makes every row a new one, whatever the source had: for rows that are appended."""
    place = func.int8send(staged_row.c.position)
    identity: ColumnElement[bytes] = func.sha256(func.uuid_send(rows.run_id).concat(place))
    return identity


async def match_known(work: UnitOfWork, rows: Comparison) -> int:
    """Find the record of every row that the source had; one in the trash stays there.

    Gives how many rows the source had.
    """
    unchanged = and_(source_row.c.digest == staged_row.c.digest, source_row.c.removed.is_(False))
    if rows.anew:
        unchanged = false()
    matched = await work.execute(
        update(staged_row)
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
            change=case(
                (RECORD.deleted_at.is_not(None), SKIPPED), (unchanged, UNCHANGED), else_=UPDATED
            ),
        )
    )
    return matched.rowcount


async def match_keys(work: UnitOfWork, rows: Comparison, keys: Sequence[str]) -> None:
    """Find records with the values of the key fields, wherever they came from; the oldest counts.

    A record that another row has already is left to that one.
    """
    fields = rows.schema.fields
    staged, other = staged_row.alias("wanted"), staged_row.alias("other")
    is_taken = exists().where(other.c.run_id == rows.run_id, other.c.record_id == RECORD.id)
    matches = (
        select(staged.c.position, func.min(cast(RECORD.id, Text)).label("record_id"))
        .where(
            staged.c.run_id == rows.run_id,
            staged.c.change.is_(None),
            *rows.records,
            ~is_taken,
            *(
                RECORD.title == staged.c.title
                if fields[key].title
                else equal_values(fields[key], staged.c.data[key])
                for key in keys
            ),
        )
        .group_by(staged.c.position)
        .subquery()
    )
    await work.execute(
        update(staged_row)
        .where(rows.staged, staged_row.c.position == matches.c.position)
        .values(record_id=cast(matches.c.record_id, RECORD.id.type), change=UPDATED)
    )


def gone_rows(rows: Comparison) -> Select[Any]:
    """The records of rows that the source had and has no more, as `record_id`s.

    A record that another row has now, by the values of its keys, is not gone.
    """
    still = exists().where(rows.staged, staged_row.c.identity == source_row.c.identity)
    is_taken = exists().where(rows.staged, staged_row.c.record_id == source_row.c.record_id)
    return (
        select(source_row.c.record_id)
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


def other_records(rows: Comparison) -> Select[Any]:
    """The records of the target that no staged row has, as `record_id`s: for a replacement."""
    staged = exists().where(rows.staged, staged_row.c.record_id == RECORD.id)
    return select(RECORD.id.label("record_id")).where(
        *rows.records, RECORD.archived.is_(False), ~staged
    )


async def count_rows(work: UnitOfWork, selected: Select[Any]) -> int:
    """The number of rows a query gives."""
    counted: int = await work.scalar(select(func.count()).select_from(selected.subquery()))
    return counted


async def count_known(work: UnitOfWork, rows: Comparison, *, removed: bool = False) -> int:
    """The number of rows the source had; the removed ones count if asked for."""
    known = select(literal(1)).where(*rows.known)
    if not removed:
        known = known.where(source_row.c.removed.is_(False))
    return await count_rows(work, known)


async def count_changes(work: UnitOfWork, rows: Comparison) -> dict[str | None, int]:
    """The number of staged rows of each change; None stands for new records."""
    counted = await work.rows(
        select(staged_row.c.change, func.count().label("times"))
        .where(rows.staged)
        .group_by(staged_row.c.change)
    )
    return {row.change: row.times for row in counted}

"""The staging table of a conversion: converted values, kept until all are applied to the records.

Records in the trash are converted too, because they may be restored; they are not counted.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from pydantic_core import to_json
from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    column,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert

from models.core.base import Id
from models.data.databases.tables import conversion_value
from models.data.records.commands.history import WRITTEN, recording_creations
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp

CHUNK = 2_000
"""Records whose values one transaction converts."""
APPLY_BATCH = 20_000
"""Records that one statement changes, well within its timeout."""


class FieldValueRow(Protocol):
    """A record with the value of one field."""

    id: Id
    value: Any
    updated_at: datetime


class Source(NamedTuple):
    """The values of one field."""

    workspace_id: Id
    database_id: Id
    key: str

    @property
    def records(self) -> tuple[ColumnElement[bool], ...]:
        return (
            record.c.workspace_id == self.workspace_id,
            record.c.database_id == self.database_id,
        )

    @property
    def filled(self) -> ColumnElement[bool]:
        """True when a record has a value."""
        return record.c.data.op("?")(self.key)

    @property
    def shown(self) -> tuple[ColumnElement[bool], ...]:
        """The conditions of the records outside the trash that have a value."""
        return (*self.records, self.filled, record.c.deleted_at.is_(None))

    def read(self) -> Select[Any]:
        """Records with their values, as `FieldValueRow`s."""
        return select(
            record.c.id, record.c.data[self.key].label("value"), record.c.updated_at
        ).where(*self.records)


async def first_values(work: UnitOfWork, source: Source, most: int) -> Sequence[FieldValueRow]:
    """The first records outside the trash that have a value."""
    statement = source.read().where(*source.shown).order_by(record.c.id).limit(most)
    return await work.rows(statement, of=FieldValueRow)


async def number_of_values(work: UnitOfWork, source: Source) -> int:
    """The number of records outside the trash that have a value."""
    counted: int = await work.scalar(select(func.count()).select_from(record).where(*source.shown))
    return counted


async def values_after(
    work: UnitOfWork, source: Source, after: Id | None
) -> Sequence[FieldValueRow]:
    """The next records after one, in the order of their ids; their `value` may be None."""
    statement = source.read().order_by(record.c.id).limit(CHUNK)
    if after is not None:
        statement = statement.where(record.c.id > after)
    return await work.rows(statement, of=FieldValueRow)


async def unstaged_values(work: UnitOfWork, source: Source, job_id: Id) -> Sequence[FieldValueRow]:
    """Records whose value is not staged, or was changed since; at most one more than a chunk."""
    prepared = and_(
        conversion_value.c.job_id == job_id,
        conversion_value.c.workspace_id == source.workspace_id,
        conversion_value.c.record_id == record.c.id,
    )
    return await work.rows(
        source.read()
        .outerjoin(conversion_value, prepared)
        .where(
            source.filled,
            or_(
                conversion_value.c.record_id.is_(None),
                conversion_value.c.record_updated_at != record.c.updated_at,
            ),
        )
        .limit(CHUNK + 1),
        of=FieldValueRow,
    )


async def stage_values(
    work: UnitOfWork,
    source: Source,
    job_id: Id,
    rows: Sequence[FieldValueRow],
    values: Sequence[Any],
) -> None:
    """Stage the converted `values` of these records."""
    prepared = [
        {"record_id": row.id, "value": value, "record_updated_at": row.updated_at}
        for row, value in zip(rows, values, strict=True)
    ]
    parameters = {
        "job_id": job_id,
        "workspace_id": source.workspace_id,
        "rows": to_json(prepared).decode(),
    }
    await _STAGE.execute(work, parameters)


_ROWS = (
    func.jsonb_to_recordset(cast(bindparam("rows", type_=Text), JSONB))
    .table_valued(
        column("record_id", Uuid), column("value", JSONB), column("record_updated_at", Timestamp)
    )
    .render_derived(name="entry", with_types=True)
)
_STAGED_ROWS = insert(conversion_value).from_select(
    ["job_id", "workspace_id", "record_id", "value", "record_updated_at"],
    select(
        bindparam("job_id", type_=Uuid),
        bindparam("workspace_id", type_=Uuid),
        _ROWS.c.record_id,
        _ROWS.c.value,
        _ROWS.c.record_updated_at,
    ),
)
_STAGE = PreparedStatement(
    _STAGED_ROWS.on_conflict_do_update(
        index_elements=["job_id", "record_id"],
        set_={
            "value": _STAGED_ROWS.excluded.value,
            "record_updated_at": _STAGED_ROWS.excluded.record_updated_at,
        },
    )
)


async def analyze_staged(work: UnitOfWork) -> None:
    """Let the planner know how much is staged: it takes a table it knows nothing of for small."""
    await work.execute(text(f"ANALYZE {conversion_value.name}"))


async def apply_staged(work: UnitOfWork, source: Source, job_id: Id) -> None:
    """Write the staged values into their records."""
    upto: Id | None = None
    while (last := await _batch_end(work, source.workspace_id, job_id, upto)) is not None:
        without = record.c.data.op("-", return_type=JSONB())(literal(source.key, Text))
        value = func.jsonb_build_object(source.key, conversion_value.c.value, type_=JSONB)
        conditions = (
            *source.records,
            source.filled,
            *_staged(source.workspace_id, job_id),
            *([] if upto is None else [conversion_value.c.record_id > upto]),
            conversion_value.c.record_id <= last,
            record.c.id == conversion_value.c.record_id,
            record.c.updated_at == conversion_value.c.record_updated_at,
        )
        data = case(
            (conversion_value.c.value.is_(None), without),
            else_=record.c.data.op("||", return_type=JSONB())(value),
        )
        await work.execute(
            update(record)
            .where(*conditions)
            .values({record.c.data: data, **WRITTEN})
            .add_cte(recording_creations(*conditions).cte("creations"))
        )
        upto = last


async def _batch_end(work: UnitOfWork, workspace_id: Id, job_id: Id, after: Id | None) -> Id | None:
    """The last record of the next batch after one; None when no more follow."""
    ids = (
        select(conversion_value.c.record_id)
        .where(*_staged(workspace_id, job_id))
        .order_by(conversion_value.c.record_id)
        .limit(APPLY_BATCH)
    )
    if after is not None:
        ids = ids.where(conversion_value.c.record_id > after)
    chosen = ids.subquery()
    last = select(chosen.c.record_id).order_by(chosen.c.record_id.desc()).limit(1)
    found: Id | None = await work.scalar(last)
    return found


async def count_staged(work: UnitOfWork, source: Source, job_id: Id) -> tuple[int, int]:
    """The numbers of records outside the trash that get a value, and that lose theirs."""
    kept = conversion_value.c.value.is_not(None)
    counts = await work.first(
        select(
            func.count().filter(kept).label("converted"),
            func.count().filter(~kept).label("lost"),
        )
        .select_from(conversion_value)
        .join(record, record.c.id == conversion_value.c.record_id)
        .where(
            *_staged(source.workspace_id, job_id),
            *source.records,
            source.filled,
            record.c.deleted_at.is_(None),
        )
    )
    assert counts is not None, "a count always gives a row"
    return counts.converted, counts.lost


async def delete_staged(work: UnitOfWork, workspace_id: Id, job_id: Id) -> bool:
    """Delete a batch of staged values; True when none are left."""
    last = await _batch_end(work, workspace_id, job_id, None)
    if last is None:
        return True
    await work.execute(
        delete(conversion_value).where(
            *_staged(workspace_id, job_id), conversion_value.c.record_id <= last
        )
    )
    return False


def _staged(workspace_id: Id, job_id: Id) -> tuple[ColumnElement[bool], ...]:
    return (
        conversion_value.c.job_id == job_id,
        conversion_value.c.workspace_id == workspace_id,
    )

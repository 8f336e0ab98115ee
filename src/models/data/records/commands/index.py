"""The side index: typed values of the fields that large databases are filtered and sorted by.

A field is indexed once a query of a large database would be spared records by it. Its index is
named first; from then on writers keep the entries of what they write, while a job writes the
entries of the records that were there.
"""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import (
    ARRAY,
    Select,
    Text,
    Uuid,
    any_,
    exists,
    literal,
    or_,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import Insert, insert

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.records.rules.query.entries import entry_of
from models.data.records.rules.query.extraction import Expression
from models.data.records.rules.query.query import Query
from models.data.records.rules.query.routes import wanted_indexes
from models.data.records.tables import record, record_index
from models.messages.jobs.commands import accept_job
from models.messages.jobs.queries import JOB, jobs_of
from models.messages.jobs.rules import OPEN_JOB
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.ids import new_id

LARGE = 5_000
"""Records from which on a database is indexed; fewer are read as fast as an index."""
MAX_INDEXES = 20
"""Fields of one database that are indexed: each costs every writer."""
PATIENCE = timedelta(minutes=10)
"""The time in which an index that could not be built is not asked for again."""

_MOVED = frozenset({FieldKind.UPDATED_AT, FieldKind.UPDATED_BY})
"""Kinds whose value every write changes."""
_IDENTITY = ("workspace_id", "record_id", "index_id")
_VALUES = ("number", "text", "folded")


async def index_records(
    work: UnitOfWork,
    schema: Schema,
    record_ids: Collection[Id],
    changed_keys: Collection[str] | None,
) -> None:
    """Write the entries of these records for the indexed fields among `changed_keys` (None: all).

    Values that nobody writes, such as computed ones, are taken to have changed. One statement,
    and none where nothing is indexed.
    """
    if record_ids:
        condition = record.c.id == any_(literal(list(record_ids), ARRAY(Uuid)))
        await index_where(work, schema, condition, changed_keys)


async def index_where(
    work: UnitOfWork, schema: Schema, condition: Expression, changed_keys: Collection[str] | None
) -> None:
    """Write the entries, as `index_records` does, of the records that meet a condition."""
    fields = [
        field
        for field in schema.fields.values()
        if field.index_id is not None
        and (
            changed_keys is None
            or field.key in changed_keys
            or field.computed
            or field.kind in _MOVED
        )
    ]
    if not fields:
        return
    entries = insert_entries(schema, fields, condition)
    new = entries.excluded
    await work.execute(
        entries.on_conflict_do_update(
            index_elements=_IDENTITY,
            set_={name: new[name] for name in _VALUES},
            where=tuple_(*(record_index.c[name] for name in _VALUES)).is_distinct_from(
                tuple_(*(new[name] for name in _VALUES))
            ),
        )
    )


def insert_entries(schema: Schema, fields: Collection[FieldSpec], condition: Expression) -> Insert:
    """The insertion of the entries that some records have in indexed fields."""
    selected = [_entries(schema, field, condition) for field in fields]
    source = selected[0] if len(selected) == 1 else union_all(*selected)
    return insert(record_index).from_select([*_IDENTITY, *_VALUES], source)


def _entries(schema: Schema, field: FieldSpec, condition: Expression) -> Select[tuple[object, ...]]:
    entry = entry_of(field)
    return select(
        record.c.workspace_id,
        record.c.id,
        literal(field.index_id, record_index.c.index_id.type),
        entry.number,
        entry.text,
        entry.folded,
    ).where(
        record.c.workspace_id == schema.workspace_id,
        record.c.database_id == schema.database_id,
        condition,
    )


async def request_indexes(work: UnitOfWork, actor: Actor, schema: Schema, query: Query) -> bool:
    """Have the fields indexed that this query would be spared records by; False without any.

    Asks nothing where the query has no use for an index it lacks.
    """
    candidates = {field.id: field for field in wanted_indexes(query)}
    named = sum(field.index_id is not None for field in schema.fields.values())
    if not candidates or named + len(candidates) > MAX_INDEXES or not await _is_large(work, schema):
        return False
    tried = await work.rows(
        jobs_of(schema.workspace_id, Family.FIELD_INDEX, JOB.subject_id).where(
            JOB.subject_id == any_(literal(list(candidates), ARRAY(Uuid))),
            or_(
                JOB.status == any_(literal([status.value for status in OPEN_JOB], ARRAY(Text))),
                JOB.created_at > work.now - PATIENCE,
            ),
        )
    )
    missing = candidates.keys() - {row.subject_id for row in tried}
    for field_id in missing:
        await accept_job(
            work,
            actor,
            Family.FIELD_INDEX,
            new_id(),
            field_id,
            summary="Index a field",
            input={"databaseId": str(schema.database_id)},
        )
    return bool(missing)


async def _is_large(work: UnitOfWork, schema: Schema) -> bool:
    last = (
        select(literal(1))
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
        )
        .offset(LARGE - 1)
        .limit(1)
    )
    return bool(await work.scalar(select(exists(last))))

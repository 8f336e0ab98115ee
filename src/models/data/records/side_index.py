"""The side index of typed values: kept with each write, built in chunks by a job.

A field is indexed once a query of a large database would be spared records by it. Its index is
named first; from then on writers keep the entries of what they write, while a job writes the
entries of the records that were there. A chunk of the job never overwrites an entry: one that is
there was written by a writer since the index was named, and a writer knows better.
"""

from collections.abc import Collection
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import Insert, insert

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.fields.commands import await_schema, complete_index, name_index, own_schema
from models.data.fields.queries import load_schema, named_indexes
from models.data.fields.rules.fields import FieldKind, FieldSpec, Schema
from models.data.records.rules.query.ordering import blank_entries, entry_of, is_indexable
from models.data.records.rules.query.plan import Query
from models.data.records.rules.query.routes import wanted_indexes
from models.data.records.rules.query.sql import Expression
from models.data.records.tables import record, record_index
from models.messages.jobs.rules import OPEN_JOB
from models.messages.jobs.store import JOB, JobRow, accept_job, jobs_of
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind

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

    Values that are not written by clients, such as computed ones, are taken to have changed. One
    statement, and none where nothing is indexed.
    """
    if record_ids:
        condition = record.c.id == sa.any_(sa.literal(list(record_ids), sa.ARRAY(sa.Uuid)))
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
            where=sa.tuple_(*(record_index.c[name] for name in _VALUES)).is_distinct_from(
                sa.tuple_(*(new[name] for name in _VALUES))
            ),
        )
    )


def insert_entries(schema: Schema, fields: Collection[FieldSpec], condition: Expression) -> Insert:
    """The insertion of the entries that some records have in indexed fields."""
    selected = [_entries(schema, field, condition) for field in fields]
    source = selected[0] if len(selected) == 1 else sa.union_all(*selected)
    return insert(record_index).from_select([*_IDENTITY, *_VALUES], source)


def _entries(
    schema: Schema, field: FieldSpec, condition: Expression
) -> sa.Select[tuple[object, ...]]:
    entry = entry_of(field)
    return sa.select(
        record.c.workspace_id,
        record.c.id,
        sa.literal(field.index_id, record_index.c.index_id.type),
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
        jobs_of(schema.workspace_id, WorkflowKind.FIELD_INDEX, JOB.subject_id).where(
            JOB.subject_id == sa.any_(sa.literal(list(candidates), sa.ARRAY(sa.Uuid))),
            sa.or_(
                JOB.status
                == sa.any_(sa.literal([status.value for status in OPEN_JOB], sa.ARRAY(sa.Text))),
                JOB.created_at > work.now - PATIENCE,
            ),
        )
    )
    missing = candidates.keys() - {row.subject_id for row in tried}
    for field_id in missing:
        await accept_job(
            work,
            actor,
            WorkflowKind.FIELD_INDEX,
            new_id(),
            field_id,
            summary="Index a field",
            input={"databaseId": str(schema.database_id)},
        )
    return bool(missing)


async def _is_large(work: UnitOfWork, schema: Schema) -> bool:
    last = (
        sa.select(sa.literal(1))
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
        )
        .offset(LARGE - 1)
        .limit(1)
    )
    return bool(await work.scalar(sa.select(sa.exists(last))))


CHUNK = 20_000
"""Records, or dead entries, of one transaction."""

_FIRST = str(Id(int=0))


async def build_index(work: UnitOfWork, building: JobRow) -> JsonObject | None:
    """Do the next chunk of a FIELD_INDEX job; None after the last. Raises `NotFoundError`."""
    if building.progress:
        return await _fill(work, building)
    if await _sweep(work, building.workspace_id):
        return {}
    return await _name(work, building)


async def _name(work: UnitOfWork, building: JobRow) -> JsonObject | None:
    """Give the field an index that every writer knows from now on.

    Writers that began before are waited for: the records they leave are there to be found.
    """
    await own_schema(work, _database_id(building))
    schema, spec = await _field(work, building)
    if spec is None or spec.index_id is not None or not is_indexable(spec):
        return None
    await name_index(work, schema.workspace_id, spec.id, building.id)
    return {"after": _FIRST}


async def _fill(work: UnitOfWork, building: JobRow) -> JsonObject | None:
    await await_schema(work, _database_id(building))
    schema, spec = await _field(work, building)
    if spec is None or spec.index_id != building.id:
        return None
    after = Id(building.progress["after"])
    last = await work.scalar(
        sa.select(record.c.id)
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
            record.c.id > after,
        )
        .order_by(record.c.id)
        .offset(CHUNK - 1)
        .limit(1)
    )
    these = record.c.id > after if last is None else record.c.id.between(after, last)
    await work.execute(insert_entries(schema, [spec], these).on_conflict_do_nothing())
    if last is not None:
        return {"after": str(last)}
    await complete_index(work, schema.workspace_id, building.id)
    return None


async def _field(work: UnitOfWork, building: JobRow) -> tuple[Schema, FieldSpec | None]:
    schema = await load_schema(work, building.workspace_id, _database_id(building))
    by_id = {spec.id: spec for spec in schema.fields.values()}
    return schema, by_id.get(building.subject_id)


def _database_id(building: JobRow) -> Id:
    return Id(building.input["databaseId"])


async def _sweep(work: UnitOfWork, workspace_id: Id) -> bool:
    """Delete entries of indexes that no field has any more; whether there were some."""
    dead = jobs_of(workspace_id, WorkflowKind.FIELD_INDEX, JOB.id).where(
        JOB.status.not_in(OPEN_JOB),
        JOB.id.not_in(named_indexes(workspace_id)),
    )
    identity = sa.tuple_(*record_index.primary_key)
    swept = 0
    # Each of the three is what one of the partial indexes holds.
    for predicate in (
        record_index.c.number.is_not(None),
        record_index.c.text.is_not(None),
        blank_entries(),
    ):
        some = (
            sa.select(*record_index.primary_key)
            .where(
                record_index.c.workspace_id == workspace_id,
                record_index.c.index_id.in_(dead),
                predicate,
            )
            .limit(CHUNK)
        )
        swept += (await work.execute(sa.delete(record_index).where(identity.in_(some)))).rowcount
    return swept > 0

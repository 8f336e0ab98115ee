"""Building the index of one field, chunk by chunk, while records are read and written.

A chunk never overwrites an entry: one that is there was written by a writer since the index was
named, and a writer knows better.
"""

from sqlalchemy import delete, select, tuple_

from models.core.base import Id, JsonObject
from models.data.fields.commands import complete_index, name_index
from models.data.fields.locks import await_schema, own_schema
from models.data.fields.queries import load_schema, named_indexes
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.records.commands.index import insert_entries
from models.data.records.rules.query.entries import blank_entries, is_indexable
from models.data.records.tables import record, record_index
from models.messages.jobs.queries import JOB, jobs_of
from models.messages.jobs.rows import JobRow
from models.messages.jobs.rules import OPEN_JOB
from runtime.database import UnitOfWork
from runtime.families import Family

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
        select(record.c.id)
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
    dead = jobs_of(workspace_id, Family.FIELD_INDEX, JOB.id).where(
        JOB.status.not_in(OPEN_JOB),
        JOB.id.not_in(named_indexes(workspace_id)),
    )
    identity = tuple_(*record_index.primary_key)
    swept = 0
    # Each of the three is what one of the partial indexes holds.
    for predicate in (
        record_index.c.number.is_not(None),
        record_index.c.text.is_not(None),
        blank_entries(),
    ):
        some = (
            select(*record_index.primary_key)
            .where(
                record_index.c.workspace_id == workspace_id,
                record_index.c.index_id.in_(dead),
                predicate,
            )
            .limit(CHUNK)
        )
        swept += (await work.execute(delete(record_index).where(identity.in_(some)))).rowcount
    return swept > 0

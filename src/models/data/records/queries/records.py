"""Reading records: one by id, the newest first, or what a query asks for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Integer, Select, Uuid, bindparam, func, select

from models.content.items.queries import PlacementOf, sees_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest, page_request
from models.data.fields.field_rows import fields_as_text, read_fields
from models.data.fields.joins import DATABASE, database_of, live_database_of, placed_databases
from models.data.fields.queries import load_schema, schema_of, schemas
from models.data.fields.rules.fields import Schema
from models.data.records.commands.index import request_indexes
from models.data.records.queries.details import record_details
from models.data.records.queries.execution import QueryTooSlowError, find_records
from models.data.records.queries.visibility import unseen_fields
from models.data.records.rules.query.ordering import NEWEST_FIRST
from models.data.records.rules.query.query import read_query
from models.data.records.rules.write.writes import StoredRecord
from models.data.records.shapes import (
    MAX_QUERY_LIMIT,
    QueryResult,
    RecordDetail,
    RecordList,
    RecordQuery,
)
from models.data.records.tables import Record, record
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prefetching import Prefetch
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp

RECORD = record.c
"""The columns of records, for nouns that compare rows of theirs with them."""

visible = PlacementOf(
    placed_databases()
    .join(record, record.c.database_id == DATABASE.id)
    .where(
        record.c.id == bindparam("id", type_=Uuid),
        record.c.workspace_id == DATABASE.workspace_id,
        record.c.deleted_at.is_(None),
    )
)
"""The placement of a record's database.

`await visible(work, workspace_ids, record_id, user_id)` gives it.
"""


def this_record(
    workspace_id: Id | ColumnElement[Id], record_id: Id | ColumnElement[Id]
) -> tuple[ColumnElement[bool], ...]:
    """The conditions of one record that is not in the trash."""
    return (
        record.c.workspace_id == workspace_id,
        record.c.id == record_id,
        record.c.deleted_at.is_(None),
    )


def records_of(
    workspace_id: Id | ColumnElement[Id], database_id: Id | ColumnElement[Id]
) -> tuple[ColumnElement[bool], ...]:
    """The conditions of the records of a database that are not in the trash."""
    return (
        record.c.workspace_id == workspace_id,
        record.c.database_id == database_id,
        record.c.deleted_at.is_(None),
    )


def seen_records(actor: Actor, ids: Sequence[Id]) -> Select[Any]:
    """The ids of the given records that the actor sees."""
    return (
        select(record.c.id)
        .join(*database_of(record))
        .where(
            record.c.workspace_id == actor.workspace_id,
            record.c.id == func.any(ids),
            record.c.deleted_at.is_(None),
            sees_items(actor, DATABASE.item_id),
        )
    )


class _RecordWithFields(StoredRecord):
    """A record, and the fields of its database as text."""

    fields: str


_THIS = this_record(bindparam("workspace_id", type_=Uuid), bindparam("record_id", type_=Uuid))
_RECORD = PreparedStatement(
    select(record, fields_as_text().label("fields")).join(*live_database_of(record)).where(*_THIS),
    _RecordWithFields,
)
_SCHEMA_OF = PreparedStatement(
    schemas().join(record, record.c.database_id == DATABASE.id).where(*_THIS)
)

_NEWEST = (
    select(record)
    .where(
        *records_of(bindparam("workspace_id", type_=Uuid), bindparam("database_id", type_=Uuid)),
        record.c.archived.is_(False),
    )
    .order_by(*NEWEST_FIRST.clauses)
    .limit(bindparam("most", type_=Integer))
)
_FIRST_PAGE = PreparedStatement(_NEWEST, Record)
_NEXT_PAGE = PreparedStatement(
    _NEWEST.where(
        NEWEST_FIRST.after((bindparam("moment", type_=Timestamp), bindparam("id", type_=Uuid)))
    ),
    Record,
)


def prefetched_record(record_id: Id) -> Prefetch:
    """The statement of `get_record`."""
    return Prefetch(_RECORD, {"record_id": record_id})


async def get_record(work: UnitOfWork, actor: Actor, record_id: Id) -> RecordDetail:
    """A record. Raises `NotFoundError`, also when its database is in the trash."""
    parameters = {"workspace_id": actor.workspace_id, "record_id": record_id}
    found = await _RECORD.first(work, parameters)
    if found is None:
        raise NotFoundError("record")
    schema = Schema(found.workspace_id, found.database_id, read_fields(found.fields))
    (shown,) = await record_details(work, actor, schema, [found])
    return shown


async def find_record(work: UnitOfWork, workspace_id: Id, record_id: Id) -> Record | None:
    """The row of a record that is neither archived nor in the trash."""
    statement = select(record).where(*this_record(workspace_id, record_id), ~record.c.archived)
    return await work.first(statement, of=Record)


class RecordSubject(Protocol):
    """A record that somebody is told of: its title, its maker, and the item of its database."""

    title: str
    database_id: Id
    created_by_user_id: Id | None
    item_id: Id


async def record_subject(work: UnitOfWork, workspace_id: Id, record_id: Id) -> RecordSubject:
    """A record that there is, in the trash or not, as somebody is told of it."""
    (subject,) = await work.rows(
        select(record.c.title, record.c.database_id, record.c.created_by_user_id, DATABASE.item_id)
        .join(*database_of(record))
        .where(record.c.workspace_id == workspace_id, record.c.id == record_id),
        of=RecordSubject,
    )
    return subject


async def newest_record(work: UnitOfWork, workspace_id: Id, database_id: Id) -> datetime | None:
    """The moment the last of the records of a database was made; None without any."""
    found: datetime | None = await work.scalar(
        select(func.max(record.c.created_at)).where(*records_of(workspace_id, database_id))
    )
    return found


async def load_schema_of(work: UnitOfWork, workspace_id: Id, record_id: Id) -> Schema:
    """The schema that types a record, in one statement. Raises `NotFoundError`."""
    parameters = {"workspace_id": workspace_id, "record_id": record_id}
    return schema_of(await _SCHEMA_OF.first(work, parameters), "record")


async def list_records(
    work: UnitOfWork, actor: Actor, database_id: Id, page: PageRequest
) -> RecordList:
    """The records of a database that are not archived, newest first."""
    schema = await load_schema(work, actor.workspace_id, database_id)
    parameters = {
        "workspace_id": actor.workspace_id,
        "database_id": database_id,
        "most": page.fetch,
    }
    async with work.for_one_statement() as single:
        if page.after is None:
            rows = await _FIRST_PAGE.rows(single, parameters)
        else:
            moment, last_id = page.after
            rows = await _NEXT_PAGE.rows(single, {**parameters, "moment": moment, "id": last_id})
    shown = page.of(rows, NEWEST_FIRST.position)
    records = await record_details(work, actor, schema, shown.items)
    return RecordList(records=records, cursor=shown.cursor)


async def ask_records(
    work: UnitOfWork, actor: Actor, database_id: Id, body: RecordQuery, keys: KeyRing
) -> QueryResult | None:
    """The result of an actor's query; the view it names was resolved before.

    Has the fields indexed that would have spared it records; None when it took too long without,
    and the transaction has to commit so that they will be. Raises as `query_records` does.
    """
    schema = await load_schema(work, actor.workspace_id, database_id)
    unseen = await unseen_fields(work, actor, schema)
    query = read_query(body, schema.fields, work.now, unseen)
    page = _page(keys, schema, body)
    if not await request_indexes(work, actor, schema, query):
        return await find_records(work, actor, schema, query, page)
    try:
        async with work.savepoint():
            return await find_records(work, actor, schema, query, page)
    except QueryTooSlowError:
        return None


async def query_records(
    work: UnitOfWork, workspace_id: Id, database_id: Id, body: RecordQuery, keys: KeyRing
) -> QueryResult:
    """The records a query asks for, at most 200 at once, with groups and figures (C3, C5).

    It writes nothing, knows no views and shows nothing of other databases. Raises `NotFoundError`
    for the database, `ValidationError` for what is wrong with the query, `QueryTooSlowError`.
    """
    schema = await load_schema(work, workspace_id, database_id)
    query = read_query(body, schema.fields, work.now)
    return await find_records(work, None, schema, query, _page(keys, schema, body))


def _page(keys: KeyRing, schema: Schema, body: RecordQuery) -> PageRequest:
    """The page asked for; its cursor continues the same query alone."""
    asked = body.model_dump_json(exclude={"cursor", "limit", "fields"})
    place = ("records/query", schema.workspace_id, schema.database_id, asked)
    return page_request(keys, min(body.limit, MAX_QUERY_LIMIT), body.cursor, *place)

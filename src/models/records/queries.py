"""Reading records: one by id, the newest first, or by filter, order and search."""

from typing import Any

from sqlalchemy import ColumnElement, Integer, Uuid, bindparam, select

from models.base import Id
from models.databases.queries import fields_of, load_schema, schema_of
from models.databases.rules.fields import FieldSpecs, Schema
from models.databases.tables import database
from models.items.queries import PlacementOf, placed_items
from models.items.tables import item
from models.pagination import Page, PageRequest, page_request
from models.records.details import record_detail
from models.records.rules.ordering import NEWEST_FIRST
from models.records.rules.query import Query, read_query
from models.records.shapes import MAX_QUERY_LIMIT, RecordDetail, RecordList, RecordQuery
from models.records.tables import record
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared import Prepared
from runtime.schema import Timestamp

visible = PlacementOf(
    placed_items()
    .join(database, database.c.item_id == item.c.id)
    .join(record, record.c.database_id == database.c.id)
    .where(
        record.c.id == bindparam("id", type_=Uuid),
        record.c.workspace_id == item.c.workspace_id,
        database.c.workspace_id == item.c.workspace_id,
        record.c.deleted_at.is_(None),
    )
)
"""Where a record's database is placed: `await visible(work, workspace_ids, record_id, user_id)`."""


def this_record(workspace_id: Any, record_id: Any) -> tuple[ColumnElement[bool], ...]:
    """The conditions of one record that is not in the trash."""
    return (
        record.c.workspace_id == workspace_id,
        record.c.id == record_id,
        record.c.deleted_at.is_(None),
    )


def records_of(workspace_id: Any, database_id: Any) -> tuple[ColumnElement[bool], ...]:
    """The conditions of the records of a database that are not in the trash."""
    return (
        record.c.workspace_id == workspace_id,
        record.c.database_id == database_id,
        record.c.deleted_at.is_(None),
    )


_THIS = this_record(bindparam("workspace_id", type_=Uuid), bindparam("record_id", type_=Uuid))
_RECORD = Prepared(select(record).where(*_THIS))
_SCHEMA_OF = Prepared(fields_of().join(record, record.c.database_id == database.c.id).where(*_THIS))

_NEWEST = (
    select(record)
    .where(
        *records_of(bindparam("workspace_id", type_=Uuid), bindparam("database_id", type_=Uuid)),
        record.c.archived.is_(False),
    )
    .order_by(*NEWEST_FIRST.clauses)
    .limit(bindparam("most", type_=Integer))
)
_FIRST_PAGE = Prepared(_NEWEST)
_NEXT_PAGE = Prepared(
    _NEWEST.where(
        NEWEST_FIRST.after((bindparam("moment", type_=Timestamp), bindparam("id", type_=Uuid)))
    )
)


async def get_record(work: UnitOfWork, workspace_id: Id, record_id: Id) -> RecordDetail:
    """A record. Raises `NotFoundError`, also when its database is in the trash."""
    schema = await load_schema_of(work, workspace_id, record_id)
    parameters = {"workspace_id": workspace_id, "record_id": record_id}
    found = await _RECORD.first(work, parameters)
    if found is None:
        raise NotFoundError("record")
    return record_detail(found, schema.fields)


async def load_schema_of(work: UnitOfWork, workspace_id: Id, record_id: Id) -> Schema:
    """The schema that types a record, in one statement. Raises `NotFoundError`."""
    parameters = {"workspace_id": workspace_id, "record_id": record_id}
    return schema_of(await _SCHEMA_OF.rows(work, parameters), "record")


async def list_records(
    work: UnitOfWork, workspace_id: Id, database_id: Id, page: PageRequest
) -> RecordList:
    """The records of a database that are not archived, newest first."""
    schema = await load_schema(work, workspace_id, database_id)
    parameters = {"workspace_id": workspace_id, "database_id": database_id, "most": page.fetch}
    if page.after is None:
        rows = await _FIRST_PAGE.rows(work, parameters)
    else:
        moment, last_id = page.after
        rows = await _NEXT_PAGE.rows(work, {**parameters, "moment": moment, "id": last_id})
    return _shown(page.of(rows, NEWEST_FIRST.position), schema.fields)


async def query_records(
    work: UnitOfWork, workspace_id: Id, database_id: Id, body: RecordQuery, keys: KeyRing
) -> RecordList:
    """The records a query asks for, at most 200 at once (decisions C3, C5).

    Raises `NotFoundError` for the database, `ValidationError` for what is wrong with the query,
    `UnsupportedError` for groups, aggregates and views, which cannot be asked for yet.
    """
    schema = await load_schema(work, workspace_id, database_id)
    query = read_query(body, schema.fields, work.now)
    asked = body.model_dump_json(exclude={"cursor", "limit", "fields"})
    limit = min(body.limit, MAX_QUERY_LIMIT)
    page = page_request(keys, limit, body.cursor, "records/query", workspace_id, database_id, asked)
    return await _page(work, schema, query, page)


async def _page(work: UnitOfWork, schema: Schema, query: Query, page: PageRequest) -> RecordList:
    statement = (
        select(record, *query.order.selected)
        .where(*records_of(schema.workspace_id, schema.database_id), *query.conditions)
        .order_by(*query.order.clauses)
        .limit(page.fetch)
    )
    if page.after is not None:
        statement = statement.where(query.order.after(page.after))
    return _shown(page.of(await work.rows(statement), query.order.position), query.shown_fields)


def _shown(page: Page[Any], fields: FieldSpecs) -> RecordList:
    return RecordList(
        records=[record_detail(row, fields) for row in page.items], cursor=page.cursor
    )

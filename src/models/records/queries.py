"""Reading records: one by id, the newest first, or by filter, order and search."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, select

from models.access.placement import Placement
from models.base import Id
from models.databases.queries import fields_of, load_schema, schema_of
from models.databases.rules.fields import Schema
from models.databases.tables import database
from models.items.queries import placed_items, placement_from
from models.items.tables import item
from models.pagination import PageRequest, page_request
from models.records.details import record_detail
from models.records.rules.query import Query, read_query
from models.records.shapes import MAX_QUERY_LIMIT, RecordDetail, RecordList, RecordQuery
from models.records.tables import record
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def visible(work: UnitOfWork, workspace_ids: Sequence[Id], record_id: Id) -> Placement | None:
    """Where a record's database is placed, or None when none of these workspaces shows it."""
    start = (
        placed_items()
        .join(database, database.c.item_id == item.c.id)
        .join(record, record.c.database_id == database.c.id)
        .where(
            record.c.id == record_id,
            record.c.workspace_id.in_(workspace_ids),
            record.c.deleted_at.is_(None),
        )
    )
    return await placement_from(work, start)


async def get_record(work: UnitOfWork, workspace_id: Id, record_id: Id) -> RecordDetail:
    """A record. Raises `NotFoundError`, also when its database is in the trash."""
    schema = await load_schema_of(work, workspace_id, record_id)
    found = await work.first(select(record).where(*this_record(workspace_id, record_id)))
    if found is None:
        raise NotFoundError("record")
    return record_detail(found, schema.fields)


async def load_schema_of(work: UnitOfWork, workspace_id: Id, record_id: Id) -> Schema:
    """The schema that types a record, in one statement. Raises `NotFoundError`."""
    rows = await work.rows(
        fields_of(workspace_id)
        .join(record, record.c.database_id == database.c.id)
        .where(*this_record(workspace_id, record_id))
    )
    return schema_of(rows, "record")


def this_record(workspace_id: Id, record_id: Id) -> tuple[ColumnElement[bool], ...]:
    """The conditions of one record that is not in the trash."""
    return (
        record.c.workspace_id == workspace_id,
        record.c.id == record_id,
        record.c.deleted_at.is_(None),
    )


async def list_records(
    work: UnitOfWork, workspace_id: Id, database_id: Id, page: PageRequest
) -> RecordList:
    """The records of a database that are not archived, newest first."""
    schema = await load_schema(work, workspace_id, database_id)
    return await _page(work, schema, read_query(RecordQuery(), schema.fields, work.now), page)


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
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
            record.c.deleted_at.is_(None),
            *query.conditions,
        )
        .order_by(*query.order.clauses)
        .limit(page.fetch)
    )
    if page.after is not None:
        statement = statement.where(query.order.after(page.after))
    shown = page.of(await work.rows(statement), query.order.position)
    return RecordList(
        records=[record_detail(row, query.shown_fields) for row in shown.items],
        cursor=shown.cursor,
    )

"""Reading records: by id, newest first, by query; and their number."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Protocol

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from models.content.items.queries import PlacementOf, sees_items
from models.content.surfaces.queries import placement_of_surfaces
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest, page_request
from models.data.fields import rows as field_rows
from models.data.fields.queries import load_schema, schema_of, schemas
from models.data.fields.rules.fields import Schema
from models.data.records import shapes
from models.data.records.details import record_details, unseen_fields
from models.data.records.rules.query import routes
from models.data.records.rules.query.ordering import NEWEST_FIRST
from models.data.records.rules.query.plan import Query, read_query
from models.data.records.rules.writes import TRASH, StoredRecord
from models.data.records.side_index import request_indexes
from models.data.records.tables import Record, record, record_count
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, UnsupportedError
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import Prefetch, PreparedStatement

RECORD = record.c
"""The columns of records, for resources that compare rows of theirs with them."""

visible = PlacementOf(
    field_rows.placed_databases()
    .join(record, record.c.database_id == field_rows.DATABASE.id)
    .where(
        record.c.id == sa.bindparam("id", type_=sa.Uuid),
        record.c.workspace_id == field_rows.DATABASE.workspace_id,
        record.c.deleted_at.is_(None),
    )
)
"""The placement of a record's database.

`await visible(work, workspace_ids, record_id, user_id)` gives it.
"""


def this_record(
    workspace_id: Id | sa.ColumnElement[Id], record_id: Id | sa.ColumnElement[Id]
) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of one record that is not in the trash."""
    return (
        record.c.workspace_id == workspace_id,
        record.c.id == record_id,
        record.c.deleted_at.is_(None),
    )


def records_of(
    workspace_id: Id | sa.ColumnElement[Id], database_id: Id | sa.ColumnElement[Id]
) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of the records of a database that are not in the trash."""
    return (
        record.c.workspace_id == workspace_id,
        record.c.database_id == database_id,
        record.c.deleted_at.is_(None),
    )


def seen_records(actor: Actor, ids: Sequence[Id]) -> sa.Select[Any]:
    """The ids of the given records that the actor sees."""
    return (
        sa.select(record.c.id)
        .join(*field_rows.database_of(record))
        .where(
            record.c.workspace_id == actor.workspace_id,
            record.c.id == sa.func.any(ids),
            record.c.deleted_at.is_(None),
            sees_items(actor, field_rows.DATABASE.item_id),
        )
    )


class _RecordWithFields(StoredRecord):
    """A record, and the fields of its database as text."""

    fields: str


_THIS = this_record(
    sa.bindparam("workspace_id", type_=sa.Uuid), sa.bindparam("record_id", type_=sa.Uuid)
)
_RECORD = PreparedStatement(
    sa.select(record, field_rows.fields_as_text().label("fields"))
    .join(*field_rows.live_database_of(record))
    .where(*_THIS),
    _RecordWithFields,
)
_SCHEMA_OF = PreparedStatement(
    schemas().join(record, record.c.database_id == field_rows.DATABASE.id).where(*_THIS)
)

_NEWEST = (
    sa.select(record)
    .where(
        *records_of(
            sa.bindparam("workspace_id", type_=sa.Uuid), sa.bindparam("database_id", type_=sa.Uuid)
        ),
        record.c.archived.is_(False),
    )
    .order_by(*NEWEST_FIRST.clauses)
    .limit(sa.bindparam("most", type_=sa.Integer))
)
_FIRST_PAGE = PreparedStatement(_NEWEST, Record)
_NEXT_PAGE = PreparedStatement(
    _NEWEST.where(
        NEWEST_FIRST.after(
            (sa.bindparam("moment", type_=Timestamp), sa.bindparam("id", type_=sa.Uuid))
        )
    ),
    Record,
)


def prefetched_record(record_id: Id) -> Prefetch:
    """The statement of `get_record`."""
    return Prefetch(_RECORD, {"record_id": record_id})


async def get_record(work: UnitOfWork, actor: Actor, record_id: Id) -> shapes.RecordDetail:
    """A record. Raises `NotFoundError`, also when its database is in the trash."""
    parameters = {"workspace_id": actor.workspace_id, "record_id": record_id}
    found = await _RECORD.first(work, parameters)
    if found is None:
        raise NotFoundError("record")
    schema = Schema(found.workspace_id, found.database_id, field_rows.read_fields(found.fields))
    (shown,) = await record_details(work, actor, schema, [found])
    return shown


async def find_record(work: UnitOfWork, workspace_id: Id, record_id: Id) -> Record | None:
    """The row of a record that is neither archived nor in the trash."""
    statement = sa.select(record).where(*this_record(workspace_id, record_id), ~record.c.archived)
    return await work.first(statement, of=Record)


async def revisions(
    work: UnitOfWork, workspace_id: Id, database_id: Id, record_ids: Sequence[Id]
) -> dict[Id, datetime]:
    """The moments of the last changes of these records, as far as they are not in the trash."""
    ids = sa.any_(sa.literal(record_ids, sa.ARRAY(sa.Uuid)))
    found = await work.rows(
        sa.select(record.c.id, record.c.updated_at).where(
            *records_of(workspace_id, database_id), record.c.id == ids
        )
    )
    return {row.id: row.updated_at for row in found}


async def records_by_id(
    work: UnitOfWork, actor: Actor, database_id: Id, record_ids: Sequence[Id]
) -> list[shapes.RecordDetail]:
    """These records of a database, as far as they are not in the trash, in no order.

    Raises `NotFoundError` for a database that is there no more.
    """
    schema = await load_schema(work, actor.workspace_id, database_id)
    ids = sa.any_(sa.literal(record_ids, sa.ARRAY(sa.Uuid)))
    rows = await work.rows(
        sa.select(record).where(*records_of(actor.workspace_id, database_id), record.c.id == ids),
        of=Record,
    )
    return await record_details(work, actor, schema, rows)


class RecordSubject(Protocol):
    """A record as a notification names it: title, creator, and the item of its database."""

    title: str
    database_id: Id
    created_by_user_id: Id | None
    item_id: Id


async def record_subject(work: UnitOfWork, workspace_id: Id, record_id: Id) -> RecordSubject:
    """An existing record, in the trash or not, as a notification names it."""
    (subject,) = await work.rows(
        sa.select(
            record.c.title,
            record.c.database_id,
            record.c.created_by_user_id,
            field_rows.DATABASE.item_id,
        )
        .join(*field_rows.database_of(record))
        .where(record.c.workspace_id == workspace_id, record.c.id == record_id),
        of=RecordSubject,
    )
    return subject


async def newest_record(work: UnitOfWork, workspace_id: Id, database_id: Id) -> datetime | None:
    """The moment the last of the records of a database was made; None without any."""
    found: datetime | None = await work.scalar(
        sa.select(sa.func.max(record.c.created_at)).where(*records_of(workspace_id, database_id))
    )
    return found


async def load_schema_of(work: UnitOfWork, workspace_id: Id, record_id: Id) -> Schema:
    """The schema that types a record, in one statement. Raises `NotFoundError`."""
    parameters = {"workspace_id": workspace_id, "record_id": record_id}
    return schema_of(await _SCHEMA_OF.first(work, parameters), "record")


async def list_records(
    work: UnitOfWork, actor: Actor, database_id: Id, page: PageRequest
) -> shapes.RecordList:
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
    return shapes.RecordList(records=records, cursor=shown.cursor)


async def ask_records(
    work: UnitOfWork, actor: Actor, database_id: Id, body: shapes.RecordQuery, keys: KeyRing
) -> shapes.QueryResult | None:
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
    work: UnitOfWork, workspace_id: Id, database_id: Id, body: shapes.RecordQuery, keys: KeyRing
) -> shapes.QueryResult:
    """The records a query asks for, at most 200 at once, with groups and figures.

    It writes nothing, knows no views and shows nothing of other databases. Raises `NotFoundError`
    for the database, `ValidationError` for what is wrong with the query, `QueryTooSlowError`.

    See interface.md#record-queries.
    """
    schema = await load_schema(work, workspace_id, database_id)
    query = read_query(body, schema.fields, work.now)
    return await find_records(work, None, schema, query, _page(keys, schema, body))


def _page(keys: KeyRing, schema: Schema, body: shapes.RecordQuery) -> PageRequest:
    """The page asked for; its cursor continues the same query alone."""
    asked = body.model_dump_json(exclude={"cursor", "limit", "fields"})
    place = ("records/query", schema.workspace_id, schema.database_id, asked)
    return page_request(keys, min(body.limit, shapes.MAX_QUERY_LIMIT), body.cursor, *place)


FEW = 5_000
"""Records that are read one by one rather than looked for along an order."""
SAMPLE = 200
"""Records along an order that tell whether such records are rare there."""


class QueryTooSlowError(UnsupportedError):
    """PostgreSQL gave the query up for its time: repeated, it would take as long."""

    def __init__(self) -> None:
        super().__init__(
            "The query took too long. Filter or sort by a number, a date, an option or the start"
            " of a text. Large databases are indexed for a filter some minutes after its first use."
        )


async def find_records(
    work: UnitOfWork, actor: Actor | None, schema: Schema, query: Query, page: PageRequest
) -> shapes.QueryResult:
    """One page of a query, with the groups and figures it asks for, as the actor sees it.

    Raises `QueryTooSlowError`.
    """
    async with in_time():
        route = await choose_route(work, schema, query)
        rows = await read_page(work, schema, query, route, page.after, page.fetch)
        figures = groups = None
        if query.figures:
            row = await work.first(routes.figures_statement(schema, query, route))
            figures = routes.figures_of(query, row)
        if query.levels:
            groups = routes.groups_of(
                query,
                await work.rows(routes.groups_statement(schema, query, route), of=routes.GroupRow),
            )
        colors = await _colors(work, schema, query, rows)
    shown = page.of(rows, query.order.position)
    return shapes.QueryResult(
        records=await record_details(work, actor, schema, shown.items, query.shown_fields),
        cursor=shown.cursor,
        groups=None if groups is None else groups.groups,
        groups_truncated=None if groups is None else groups.truncated,
        aggregates=figures,
        colors=colors,
    )


async def _colors(
    work: UnitOfWork, schema: Schema, query: Query, rows: Sequence[Record]
) -> dict[str, str] | None:
    """The colors of records by their ids; None when no rule colors any."""
    if not query.colors:
        return None
    color = sa.case(*query.colors)
    statement = sa.select(record.c.id, color.label("color")).where(
        record.c.workspace_id == schema.workspace_id,
        record.c.id == sa.func.any([row.id for row in rows]),
        color.is_not(None),
    )
    return {str(row.id): row.color for row in await work.rows(statement)}


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Tell a statement that took too long from a database that is away."""
    try:
        yield
    except OperationalError as error:
        if isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise QueryTooSlowError from error
        raise


async def choose_route(work: UnitOfWork, schema: Schema, query: Query) -> routes.Route:
    """The way to the records that reads the fewest, as far as the side index can tell."""
    choices = routes.candidates(schema, query)
    along = routes.Route(along=routes.can_go_along(query))
    if not choices:
        unsure = along.along and routes.is_unpredictable(query)
        if unsure and not await work.scalar(routes.sample(schema, query, SAMPLE)):
            return routes.Route()
        return along
    counts = await work.first(sa.select(*(routes.count_up_to(one, FEW + 1) for one in choices)))
    assert counts is not None
    fewest, among = min(zip(counts, choices, strict=True), key=lambda pair: pair[0])
    return routes.Route(among=among) if fewest <= FEW else along


async def read_page(
    work: UnitOfWork,
    schema: Schema,
    query: Query,
    route: routes.Route,
    after: routes.Position,
    most: int,
) -> Sequence[Record]:
    """The next records after a position, `most` of them unless these are the last."""
    rows: list[Record] = []
    for statement in routes.pages(schema, query, route, after, most):
        rows += await work.rows(statement, of=Record)
        if len(rows) >= most:
            break
    return rows[:most]


restorable = PlacementOf(
    field_rows.placed_databases()
    .join(record, record.c.database_id == field_rows.DATABASE.id)
    .where(
        record.c.id == sa.bindparam("id", type_=sa.Uuid),
        record.c.workspace_id == field_rows.DATABASE.workspace_id,
        sa.or_(
            record.c.deleted_at.is_(None), record.c.deleted_at > sa.func.now() - sa.literal(TRASH)
        ),
    )
)
"""The placement of the database of a record that can be restored, or need not be."""


def _item_of_content(surface: sa.FromClause) -> sa.ColumnElement[Any]:
    """The item of the database that a content belongs to; null while its record is in the trash."""
    live = sa.select(record.c.id).where(*this_record(surface.c.workspace_id, surface.c.record_id))
    return (
        field_rows.item_of_database(surface.c.workspace_id, surface.c.database_id)
        .where(sa.or_(surface.c.record_id.is_(None), live.correlate_except(record).exists()))
        .scalar_subquery()
    )


visible_surface = placement_of_surfaces(_item_of_content)
"""The placement of a surface, a record's content with its database: `await visible_surface(…)`."""

MERGED_AT_ONCE = 1_000
"""Databases whose counts one transaction merges."""

_TOTAL = sa.cast(sa.func.coalesce(sa.func.sum(record_count.c.number), 0), sa.BigInteger)


def number_of_records(workspace_id: Id) -> sa.Select[Any]:
    """The number of a workspace's records outside the trash whose databases are outside it too."""
    return field_rows.live_databases(workspace_id, _TOTAL).join(
        record_count, record_count.c.database_id == field_rows.DATABASE.id
    )


async def merge_counts(work: UnitOfWork) -> int:
    """Make one row of the counts of some databases that have several; returns their number.

    Call it until it returns 0. What is written meanwhile is left to the next call.
    """
    several = (
        sa.select(record_count.c.database_id)
        .group_by(record_count.c.database_id)
        .having(sa.func.count() > 1)
        .limit(MERGED_AT_ONCE)
    )
    parts = (
        sa.delete(record_count)
        .where(record_count.c.database_id.in_(several))
        .returning(record_count.c.database_id, record_count.c.number)
        .cte("part")
    )
    total = sa.cast(sa.func.sum(parts.c.number), sa.BigInteger)
    merged = sa.insert(record_count).from_select(
        ["database_id", "number"],
        sa.select(parts.c.database_id, total).group_by(parts.c.database_id),
    )
    return len(await work.rows(merged.returning(record_count.c.id)))

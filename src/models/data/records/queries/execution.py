"""Running a query: the shortest way to its records, a page of them, their groups and figures."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import psycopg
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from models.core.access.rules import Actor
from models.core.pagination import PageRequest
from models.data.fields.rules.fields import Schema
from models.data.records.queries.details import record_details
from models.data.records.rules.query.query import Query
from models.data.records.rules.query.routes import (
    Position,
    Route,
    can_go_along,
    candidates,
    count_up_to,
    is_unpredictable,
    pages,
    sample,
)
from models.data.records.rules.query.summaries import (
    GroupRow,
    figures_of,
    figures_statement,
    groups_of,
    groups_statement,
)
from models.data.records.shapes import QueryResult
from models.data.records.tables import Record
from runtime.database import UnitOfWork
from runtime.errors import UnsupportedError

FEW = 5_000
"""Records that are read one by one rather than looked for along an order."""
SAMPLE = 200
"""Records along an order that tell whether such records are rare there."""


class QueryTooSlowError(UnsupportedError):
    """PostgreSQL gave the query up for its time: repeated, it would take as long."""

    def __init__(self) -> None:
        super().__init__(
            "The query takes too long. Filter or sort by a number, a date, an option or the"
            " beginning of a text: large databases are indexed by what they are asked for, a few"
            " minutes after they were asked for it first."
        )


async def find_records(
    work: UnitOfWork, actor: Actor | None, schema: Schema, query: Query, page: PageRequest
) -> QueryResult:
    """One page of a query, with the groups and figures it asks for, as the actor sees it.

    Raises `QueryTooSlowError`.
    """
    async with in_time():
        route = await choose_route(work, schema, query)
        rows = await read_page(work, schema, query, route, page.after, page.fetch)
        figures = groups = None
        if query.figures:
            row = await work.first(figures_statement(schema, query, route))
            figures = figures_of(query, row)
        if query.levels:
            groups = groups_of(
                query, await work.rows(groups_statement(schema, query, route), of=GroupRow)
            )
    shown = page.of(rows, query.order.position)
    return QueryResult(
        records=await record_details(work, actor, schema, shown.items, query.shown_fields),
        cursor=shown.cursor,
        groups=None if groups is None else groups.groups,
        groups_truncated=None if groups is None else groups.truncated,
        aggregates=figures,
    )


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Tell a statement that was given up for its time from a database that is away."""
    try:
        yield
    except OperationalError as error:
        if isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise QueryTooSlowError from error
        raise


async def choose_route(work: UnitOfWork, schema: Schema, query: Query) -> Route:
    """The way to the records that reads the fewest, as far as the side index can tell."""
    choices = candidates(schema, query)
    along = Route(along=can_go_along(query))
    if not choices:
        unsure = along.along and is_unpredictable(query)
        if unsure and not await work.scalar(sample(schema, query, SAMPLE)):
            return Route()
        return along
    counts = await work.first(select(*(count_up_to(one, FEW + 1) for one in choices)))
    assert counts is not None
    fewest, among = min(zip(counts, choices, strict=True), key=lambda pair: pair[0])
    return Route(among=among) if fewest <= FEW else along


async def read_page(
    work: UnitOfWork, schema: Schema, query: Query, route: Route, after: Position, most: int
) -> Sequence[Record]:
    """The next records after a position, `most` of them unless these are the last."""
    rows: list[Record] = []
    for statement in pages(schema, query, route, after, most):
        rows += await work.rows(statement, of=Record)
        if len(rows) >= most:
            break
    return rows[:most]

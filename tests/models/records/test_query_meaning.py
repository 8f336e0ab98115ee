"""Queries against PostgreSQL mean what they mean over plain values, page by page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from models.databases.commands import create_database
from models.databases.shapes import CreateDatabase
from models.records.queries import query_records
from models.records.shapes import RecordQuery
from models.records.tables import record
from runtime.database import Database, UnitOfWork
from tests.models.records.naive import MISFIT, Row, holds, ordered
from tests.support.spaces import Space

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)

FIELDS = [
    {"label": "Note", "kind": "long_text"},
    {"label": "Size", "kind": "number"},
    {"label": "Done", "kind": "checkbox"},
    {"label": "Day", "kind": "date"},
    {"label": "At", "kind": "datetime"},
    {"label": "Clock", "kind": "time"},
    {
        "label": "State",
        "kind": "select",
        "options": [{"name": n} for n in ("Zeta", "Alpha", "Mid")],
    },
    {
        "label": "Tags",
        "kind": "multi_select",
        "options": [{"name": n} for n in ("One", "Two", "Three")],
    },
    {"label": "Place", "kind": "location"},
    {"label": "Serial", "kind": "auto_number"},
    {"label": "Born", "kind": "created_at"},
]

texts = st.text(alphabet="aAbBäÄ%_\\é🙂", max_size=4)
numbers = st.sampled_from([-1, 0, 0.1, 0.30000000000000004, 1, 2.5, 10**20, 1e-7, 2**53 + 1])
days = st.sampled_from([f"2026-05-{day}" for day in (18, 19, 20, 21, 22)])
moments = st.sampled_from(
    [f"2026-05-{day}T{time}.000Z" for day in (19, 20, 21) for time in ("00:00:00", "12:00:00")]
)
clocks = st.sampled_from(["09:30", "09:30:15", "10:00", "23:59:59"])
states = st.sampled_from(["zeta", "alpha", "mid"])
tags = st.lists(st.sampled_from(["one", "two", "three"]), max_size=3, unique=True)
places = st.just({"lat": 1, "lng": 2})
misfits = st.sampled_from([7, [], {"one": 1}, None])
"""Values that no field of text has; those of the others are misfits of each other."""

STORED: dict[str, st.SearchStrategy[Any]] = {
    "note": texts | misfits,
    "size": numbers | st.sampled_from(["7", [], None, True]),
    "done": st.booleans() | misfits,
    "day": days | misfits | st.just(MISFIT),
    "at": moments | misfits | st.just(MISFIT),
    "clock": clocks | misfits | st.just(MISFIT),
    "state": states | misfits,
    "tags": tags | st.sampled_from(["one", 7, {"one": 1}, None]),
    "place": places | st.none(),
}

rows = st.lists(
    st.builds(
        Row,
        id=st.uuids(version=4),
        title=texts,
        data=st.fixed_dictionaries({}, optional=STORED),
        number=st.integers(1, 4),
        created_at=st.sampled_from([NOW + timedelta(hours=hours) for hours in (-30, -12, 0, 12)]),
        archived=st.booleans(),
    ),
    max_size=10,
    unique_by=lambda row: row.id,
)


def leaves(field: str, values: st.SearchStrategy[Any], ops: list[str]) -> st.SearchStrategy[Any]:
    """Leaves of one field: the operand has the form the operator takes."""

    def operand(op: str) -> st.SearchStrategy[Any]:
        if op in {"is_empty", "is_not_empty"}:
            return st.none()
        if op in {"in", "not_in", "has_any", "has_all", "has_none"}:
            return st.lists(values, max_size=3)
        if op == "between":
            return st.lists(values, min_size=2, max_size=2).map(sorted)
        if op == "within":
            return st.fixed_dictionaries(
                {
                    "unit": st.just("day"),
                    "count": st.integers(1, 3),
                    "direction": st.sampled_from(["past", "future"]),
                }
            )
        return st.sampled_from(["yesterday", "today", "tomorrow"]) if op == "relative" else values

    return st.sampled_from(ops).flatmap(
        lambda op: operand(op).map(lambda value: {"field": field, "op": op, "value": value})
    )


EMPTY = ["is_empty", "is_not_empty"]
EQUAL = ["eq", "ne"]
ORDER = ["gt", "gte", "lt", "lte", "between"]
MEMBER = ["in", "not_in"]
SUBSTRING = ["contains", "not_contains", "starts_with", "ends_with"]

leaf = st.one_of(
    leaves("title", texts, EQUAL + MEMBER + ORDER + SUBSTRING + EMPTY),
    leaves("note", texts, EQUAL + MEMBER + ORDER + SUBSTRING + EMPTY),
    leaves("size", numbers, EQUAL + MEMBER + ORDER + EMPTY),
    leaves("serial", st.integers(1, 4), EQUAL + MEMBER + ORDER),
    leaves("done", st.booleans(), EQUAL + EMPTY),
    leaves(
        "day",
        days,
        EQUAL + MEMBER + ORDER + EMPTY + ["on", "before", "after", "within", "relative"],
    ),
    leaves("at", moments, EQUAL + MEMBER + ORDER + EMPTY),
    leaves("at", days, EQUAL + ORDER + ["on", "before", "after", "relative"]),
    leaves("born", moments, EQUAL + MEMBER + ORDER),
    leaves("born", days, EQUAL + ORDER + ["on", "before", "after", "relative"]),
    leaves("clock", clocks, EQUAL + MEMBER + ORDER + EMPTY),
    leaves("state", states, EQUAL + MEMBER + EMPTY),
    leaves(
        "tags",
        st.sampled_from(["one", "two", "three"]),
        ["has_any", "has_all", "has_none", "contains", *EMPTY],
    ),
    leaves("place", st.none(), EMPTY),
)

trees = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: {"and": parts}),
        st.lists(inner, max_size=3).map(lambda parts: {"or": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=6,
)

SORTABLE = ["title", "note", "size", "done", "day", "at", "clock", "state", "serial", "born"]
sorts = st.lists(
    st.fixed_dictionaries(
        {
            "field": st.sampled_from(SORTABLE),
            "direction": st.sampled_from(["asc", "desc"]),
            "nulls": st.sampled_from(["first", "last"]),
        }
    ),
    max_size=3,
    unique_by=lambda sort: sort["field"],
)


@pytest_asyncio.fixture(scope="session")
async def typed(_watched_database: Database, keys: Any) -> tuple[Space, UUID]:
    """A database with one field of every form, committed once."""
    from tests.support.spaces import make_space  # noqa: PLC0415

    space = await make_space(_watched_database, keys)
    async with _watched_database.transaction() as work:
        body = CreateDatabase.model_validate({"label": "Typed", "fields": FIELDS})
        return space, (await create_database(work, space.actor, body)).id


@asynccontextmanager
async def stored(
    database: Database, typed: tuple[Space, UUID], present: list[Row]
) -> AsyncIterator[UnitOfWork]:
    """A transaction in which exactly these rows are there; it is rolled back."""
    space, database_id = typed
    async with database.engine.connect() as connection:
        work = UnitOfWork(connection)
        work.now = NOW
        if present:
            values = [
                {
                    "id": row.id,
                    "workspace_id": space.id,
                    "database_id": database_id,
                    "title": row.title,
                    "data": row.data,
                    "number": row.number,
                    "archived": row.archived,
                    "created_at": row.created_at,
                    "updated_at": row.created_at,
                }
                for row in present
            ]
            await work.execute(insert(record), values)
        yield work


async def walk(work: UnitOfWork, typed: tuple[Space, UUID], keys: Any, **query: Any) -> list[UUID]:
    """The ids of all pages of a query."""
    space, database_id = typed
    found: list[UUID] = []
    cursor = None
    while True:
        body = RecordQuery.model_validate({**query, "cursor": cursor})
        page = await query_records(work, space.id, database_id, body, keys)
        found += [one.id for one in page.records]
        assert len(page.records) <= query["limit"]
        assert len(found) <= 10, "the walk goes round in circles"
        cursor = page.cursor
        if cursor is None:
            return found


relaxed = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@relaxed
@given(present=rows, tree=trees, order=sorts, limit=st.integers(1, 4), archived=st.booleans())
async def test_a_query_means_what_it_says(
    database: Database,
    typed: tuple[Space, UUID],
    keys: Any,
    present: list[Row],
    tree: dict[str, Any],
    order: list[dict[str, str]],
    limit: int,
    archived: bool,
) -> None:
    async with stored(database, typed, present) as work:
        found = await walk(
            work, typed, keys, filter=tree, sorts=order, limit=limit, includeArchived=archived
        )
    matching = [row for row in present if (archived or not row.archived) and holds(tree, row)]
    assert found == [row.id for row in ordered(matching, order)]


@relaxed
@given(present=rows, text=st.text(alphabet="aAbBäÄ%_\\é🙂", min_size=1, max_size=3))
async def test_search_finds_pieces_of_text_whatever_their_case(
    database: Database, typed: tuple[Space, UUID], keys: Any, present: list[Row], text: str
) -> None:
    async with stored(database, typed, present) as work:
        found = await walk(work, typed, keys, search=text, limit=200)

    def contains(value: Any) -> bool:
        return isinstance(value, str) and text.lower() in value.lower()

    matching = [
        row
        for row in present
        if not row.archived and (contains(row.title) or contains(row.data.get("note")))
    ]
    assert found == [row.id for row in ordered(matching, [])]


EDGES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"tags": {"one": 1}}, {"field": "tags", "op": "has_any", "value": ["one"]}, False),
    ({"tags": "one"}, {"field": "tags", "op": "has_any", "value": ["one"]}, False),
    ({"tags": "one"}, {"field": "tags", "op": "has_all", "value": ["one"]}, False),
    ({"tags": ["one"]}, {"field": "tags", "op": "has_all", "value": []}, True),
    ({"tags": ["one"]}, {"field": "tags", "op": "has_any", "value": []}, False),
    (
        {"at": "2026-05-21T00:00:00.000Z"},
        {"field": "at", "op": "after", "value": "2026-05-20"},
        True,
    ),
    (
        {"at": "2026-05-20T23:59:59.999Z"},
        {"field": "at", "op": "after", "value": "2026-05-20"},
        False,
    ),
    (
        {"at": "2026-05-21T00:00:00.000Z"},
        {"field": "at", "op": "lte", "value": "2026-05-20"},
        False,
    ),
    ({"at": "2026-05-21T00:00:00.000Z"}, {"field": "at", "op": "on", "value": "2026-05-20"}, False),
    (
        {"at": "2026-05-20T22:30:00.000Z"},
        {"field": "at", "op": "on", "value": "2026-05-21", "timezone": "Europe/Berlin"},
        True,
    ),
    (
        {"at": "2026-04-20T12:00:00.000Z"},
        {
            "field": "at",
            "op": "within",
            "value": {"unit": "month", "count": 1, "direction": "past"},
        },
        True,
    ),
    (
        {"at": "2026-04-20T11:59:59.999Z"},
        {
            "field": "at",
            "op": "within",
            "value": {"unit": "month", "count": 1, "direction": "past"},
        },
        False,
    ),
    (
        {"size": 0.30000000000000004},
        {"field": "size", "op": "eq", "value": 0.30000000000000004},
        True,
    ),
    ({"size": 0.30000000000000004}, {"field": "size", "op": "gt", "value": 0.3}, True),
    ({"size": 2**53 + 1}, {"field": "size", "op": "eq", "value": 2**53}, False),
    ({"size": 10**30 + 1}, {"field": "size", "op": "in", "value": [10**30 + 1]}, True),
    ({"size": 5.0}, {"field": "size", "op": "eq", "value": 5}, True),
    ({"note": "50%"}, {"field": "note", "op": "contains", "value": "%"}, True),
    ({"note": "50"}, {"field": "note", "op": "contains", "value": "%"}, False),
    ({"note": "\\_"}, {"field": "note", "op": "ends_with", "value": "\\_"}, True),
    ({"note": "ÄRGER"}, {"field": "note", "op": "starts_with", "value": "ärg"}, True),
    ({"note": ""}, {"field": "note", "op": "eq", "value": ""}, True),
    ({"place": None}, {"field": "place", "op": "is_empty"}, True),
    ({"done": "yes"}, {"field": "done", "op": "eq", "value": False}, True),
    ({"note": "x"}, {"field": "note", "op": "eq", "value": "'; SELECT pg_sleep(5)--"}, False),
]


@pytest.mark.parametrize(("data", "leaf", "matches"), EDGES)
async def test_edges(
    database: Database,
    typed: tuple[Space, UUID],
    keys: Any,
    data: dict[str, Any],
    leaf: dict[str, Any],
    matches: bool,
) -> None:
    row = Row(uuid4(), "T", data, 1, NOW, archived=False)
    async with stored(database, typed, [row]) as work:
        assert await walk(work, typed, keys, filter=leaf, limit=5) == [row.id] * matches
        opposite = {"not": leaf}
        assert await walk(work, typed, keys, filter=opposite, limit=5) == [row.id] * (not matches)

"""Queries against PostgreSQL mean what they mean over plain values, page by page.

Whichever way the records are reached: through all of them, among few, or along the side index.
"""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any
from unittest import mock
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, insert, update

from models.data.databases.field_changes import create_field
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import Schema
from models.data.fields.shapes import CreateField
from models.data.fields.tables import field
from models.data.records import queries
from models.data.records.queries import query_records
from models.data.records.rules.links import side_of
from models.data.records.rules.query import routes
from models.data.records.rules.query.ordering import is_indexable
from models.data.records.rules.query.plan import Query
from models.data.records.rules.query.routes import can_go_along
from models.data.records.shapes import RecordQuery
from models.data.records.side_index import index_records
from models.data.records.tables import record, record_link
from runtime.clock import wire_timestamp
from runtime.database import Database, UnitOfWork
from tests.models.data.records.naive import MISFIT, Row, aggregate, connect, groups, holds, ordered
from tests.support.exploring import examples
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=25)

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
    {"label": "Who", "kind": "person"},
    {"label": "Papers", "kind": "file"},
    {
        "label": "Score",
        "kind": "formula",
        "settings": {"expression": "record.size", "resultKind": "number"},
    },
    {
        "label": "Verdict",
        "kind": "formula",
        "settings": {"expression": "record.note", "resultKind": "text"},
    },
]

texts = st.text(alphabet="aAbBäÄ%_\\é🙂", max_size=4)
words = st.sampled_from(["", "a", "A", "ab", "aB", "ä", "x" * 99, *("x" * 100 + c for c in "ab")])
"""Texts of which many begin alike, some of them with more characters than an index holds."""
numbers = st.sampled_from([-1, 0, 0.1, 0.30000000000000004, 1, 2.5, 10**20, 1e-7, 2**53 + 1])
days = st.sampled_from([f"2026-05-{day}" for day in (18, 19, 20, 21, 22)])
moments = st.sampled_from(
    [f"2026-05-{day}T{time}.000Z" for day in (19, 20, 21) for time in ("00:00:00", "12:00:00")]
)
clocks = st.sampled_from(["09:30", "09:30:15", "10:00", "23:59:59"])
states = st.sampled_from(["zeta", "alpha", "mid"])
tags = st.lists(st.sampled_from(["one", "two", "three"]), max_size=3, unique=True)
places = st.just({"lat": 1, "lng": 2})
IDS = [str(UUID(int=number)) for number in (1, 2, 3)]
ids = st.lists(st.sampled_from(IDS), max_size=3, unique=True)
looked_up = st.sampled_from([1, 2.5, "a", "1", True, False])
misfits: st.SearchStrategy[Any] = st.sampled_from([7, [], {"one": 1}, None])
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
    "who": ids | st.sampled_from([IDS[0], 7, None]),
    "papers": ids | st.just({"one": 1}),
}
COMPUTED: dict[str, st.SearchStrategy[Any]] = {
    "score": numbers | st.sampled_from(["7", None, True]),
    "verdict": texts | misfits,
    "peek": st.lists(looked_up, max_size=3) | st.sampled_from(["a", None]),
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
        computed=st.fixed_dictionaries({}, optional=COMPUTED),
        links=st.lists(st.integers(0, 9), max_size=2),
        trashed=st.sampled_from([False, False, False, True]),
    ),
    max_size=10,
    unique_by=lambda row: row.id,
)


dense = st.lists(
    st.builds(
        Row,
        id=st.uuids(version=4),
        title=words,
        data=st.fixed_dictionaries(
            {"note": words, "size": numbers, "day": days, "at": moments, "clock": clocks}
        ),
        number=st.integers(1, 4),
        created_at=st.sampled_from([NOW + timedelta(hours=hours) for hours in (-30, -12, 0, 12)]),
        archived=st.just(value=False),
        computed=st.fixed_dictionaries({"score": numbers, "verdict": words}),
    ),
    min_size=4,
    max_size=10,
    unique_by=lambda row: row.id,
)
"""Rows in which every field has a value."""


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
SETS = ["has_any", "has_all", "has_none", "contains", "not_contains", *EMPTY]


def indexed_leaves(texts: st.SearchStrategy[str]) -> list[st.SearchStrategy[Any]]:
    """Tests of one value that an index holds in order, one strategy per field and kind of value."""
    return [
        leaves("title", texts, EQUAL + MEMBER + ORDER + SUBSTRING + EMPTY),
        leaves("note", texts, EQUAL + MEMBER + ORDER + SUBSTRING + EMPTY),
        leaves("size", numbers, EQUAL + MEMBER + ORDER + EMPTY),
        leaves("serial", st.integers(1, 4), EQUAL + MEMBER + ORDER),
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
        leaves("score", numbers, EQUAL + MEMBER + ORDER + EMPTY),
        leaves("verdict", texts, EQUAL + ORDER + SUBSTRING + EMPTY),
    ]


leaf = st.one_of(
    *indexed_leaves(texts),
    leaves("done", st.booleans(), EQUAL + EMPTY),
    leaves("state", states, EQUAL + MEMBER + EMPTY),
    leaves(
        "tags",
        st.sampled_from(["one", "two", "three"]),
        SETS,
    ),
    leaves("place", st.none(), EMPTY),
    *(leaves(key, st.sampled_from(IDS), SETS) for key in ("who", "papers")),
    leaves("peek", looked_up, SETS),
    leaves("links", st.sampled_from(IDS), SETS),
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

SORTABLE = [
    *("title", "note", "size", "done", "day", "at", "clock", "state", "serial", "born"),
    *("score", "verdict"),
]
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
        made = (await create_database(work, space.actor, body)).id
        for field in connections(made):
            await create_field(work, space.actor, made, CreateField.model_validate(field))
        return space, made


def connections(database_id: UUID) -> list[dict[str, Any]]:
    """A relation of the database to itself, and what is looked up over it."""
    itself = {"databaseId": str(database_id), "symmetric": True}
    over = {"relationFieldKey": "links", "targetFieldKey": "size"}
    return [
        {"label": "Links", "kind": "relation", "settings": itself},
        {"label": "Peek", "kind": "lookup", "settings": over},
    ]


@asynccontextmanager
async def stored(
    database: Database, typed: tuple[Space, UUID], present: list[Row], few: int | None = None
) -> AsyncIterator[UnitOfWork]:
    """A transaction in which exactly these rows are there; it is rolled back.

    Unless `few` is None every field that can have an index has one, and this number of records is
    few.
    """
    space, database_id = typed
    connect(present)
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
                    "deleted_at": NOW if row.trashed else None,
                    "computed": row.computed,
                }
                for row in present
            ]
            await work.execute(insert(record), values)
            await link(work, await load_schema(work, space.id, database_id), present)
        if few is not None:
            await index_everything(work, space, database_id, [row.id for row in present])
        with mock.patch.object(queries, "FEW", -1 if few is None else few):
            yield work


async def link(work: UnitOfWork, schema: Schema, present: list[Row]) -> None:
    side = side_of(schema.fields["links"])
    pairs = {
        side.oriented(row.id, present[place % len(present)].id)
        for row in present
        for place in row.links
    }
    common = {"workspace_id": schema.workspace_id, "field_id": side.field_id}
    places = {"position": 0, "target_position": 0}
    values = [{**common, **places, "record_id": one, "target_id": two} for one, two in pairs]
    if values:
        await work.execute(insert(record_link), values)


async def index_everything(
    work: UnitOfWork, space: Space, database_id: UUID, ids: list[UUID]
) -> None:
    schema = await load_schema(work, space.id, database_id)
    indexable = [spec.id for spec in schema.fields.values() if is_indexable(spec)]
    await work.execute(
        update(field)
        .where(field.c.id.in_(indexable))
        .values(index_id=func.gen_random_uuid(), index_ready=True)
    )
    await index_records(work, await load_schema(work, space.id, database_id), ids, None)


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


ways = st.sampled_from([None, 0, 5])
"""How few records are few: none is indexed, all are read along an index, some are looked up."""

relaxed = settings(
    max_examples=examples(40, explored=5_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.long
@relaxed
@given(
    present=rows,
    tree=trees,
    order=sorts,
    limit=st.integers(1, 4),
    archived=st.booleans(),
    few=ways,
)
async def test_a_query_means_what_it_says(
    *,
    database: Database,
    typed: tuple[Space, UUID],
    keys: Any,
    present: list[Row],
    tree: dict[str, Any],
    order: list[dict[str, str]],
    limit: int,
    archived: bool,
    few: int | None,
) -> None:
    async with stored(database, typed, present, few) as work:
        found = await walk(
            work, typed, keys, filter=tree, sorts=order, limit=limit, includeArchived=archived
        )
    matching = [
        row
        for row in present
        if not row.trashed and (archived or not row.archived) and holds(tree, row)
    ]
    assert found == [row.id for row in ordered(matching, order)]


@pytest.mark.long
@settings(relaxed, max_examples=examples(40, explored=5_000))
@given(
    present=dense,
    test=st.sampled_from(indexed_leaves(words)).flatmap(lambda tests: tests),
    other=st.none() | leaf,
    descending=st.booleans(),
    nulls=st.sampled_from(["first", "last"]),
    few=st.sampled_from([0, 5]),
)
async def test_an_index_answers_as_the_records_do_from_page_to_page(
    *,
    database: Database,
    typed: tuple[Space, UUID],
    keys: Any,
    present: list[Row],
    test: dict[str, Any],
    other: dict[str, Any] | None,
    descending: bool,
    nulls: str,
    few: int,
) -> None:
    direction = "desc" if descending else "asc"
    order = [{"field": test["field"], "direction": direction, "nulls": nulls}]
    tree = test if other is None else {"and": [test, other]}
    turns = itertools.cycle([True, False])

    def sometimes(query: Query) -> bool:
        return next(turns) and can_go_along(query)

    async with stored(database, typed, present, few) as work:
        with mock.patch.object(routes, "can_go_along", sometimes):
            found = await walk(work, typed, keys, filter=tree, sorts=order, limit=2)
    matching = [row for row in present if not row.trashed and not row.archived and holds(tree, row)]
    assert found == [row.id for row in ordered(matching, order)]


GROUPED = [
    *("title", "note", "size", "done", "day", "at", "clock", "state", "tags", "serial", "born"),
    *("who", "papers", "links", "score", "verdict"),
]
NUMBERS = ["sum", "avg", "min", "max", "median", "range", "stddev"]
COUNTS = ["count", "count_empty", "count_filled", "percent_empty", "percent_filled"]
FIGURES = {
    "title": [*COUNTS, "count_unique", "min", "max"],
    "note": [*COUNTS, "count_unique", "min", "max"],
    "size": [*COUNTS, "count_unique", *NUMBERS],
    "score": [*COUNTS, "count_unique", *NUMBERS],
    "serial": NUMBERS,
    "done": [*COUNTS, "checked", "unchecked"],
    "day": [*COUNTS, "count_unique", "earliest", "latest"],
    "at": [*COUNTS, "count_unique", "earliest", "latest"],
    "born": ["earliest", "latest"],
    "state": [*COUNTS, "count_unique"],
    "tags": COUNTS,
    "who": COUNTS,
    "links": COUNTS,
    "peek": COUNTS,
    "place": COUNTS,
}
figures = st.lists(
    st.sampled_from([(op, field) for field, ops in FIGURES.items() for op in ops]),
    max_size=4,
    unique=True,
)


@pytest.mark.long
@relaxed
@given(
    present=rows,
    tree=trees | st.just({"and": []}),
    level=st.sampled_from(GROUPED),
    granularity=st.sampled_from(["day", "week", "month", "quarter", "year"]),
    descending=st.booleans(),
    wanted=figures,
    few=ways,
)
async def test_groups_and_figures_are_those_of_all_matching_records(
    *,
    database: Database,
    typed: tuple[Space, UUID],
    keys: Any,
    present: list[Row],
    tree: dict[str, Any],
    level: str,
    granularity: str,
    descending: bool,
    wanted: list[tuple[str, str]],
    few: int | None,
) -> None:
    by: dict[str, Any] = {"field": level, "direction": "desc" if descending else "asc"}
    if level in {"day", "at", "born"}:
        by["granularity"] = granularity
    query = {
        "filter": tree,
        "groupBy": by,
        "aggregates": [{"op": op, "field": key} for op, key in wanted],
        "limit": 1,
    }
    async with stored(database, typed, present, few) as work:
        space, database_id = typed
        body = RecordQuery.model_validate(query)
        found = await query_records(work, space.id, database_id, body, keys)
    matching = [row for row in present if not row.trashed and not row.archived and holds(tree, row)]
    assert found.groups is not None
    assert found.groups_truncated is False
    expected = groups(matching, level, granularity, descending)
    assert [(group.value, group.count) for group in found.groups] == [
        (wire(value), len(rows)) for value, rows in expected
    ]
    check(found.aggregates or {}, wanted, matching)
    for group, (_, rows) in zip(found.groups, expected, strict=True):
        check(group.aggregates, wanted, rows)


def check(shown: dict[str, Any], wanted: list[tuple[str, str]], rows: list[Row]) -> None:
    for op, key in wanted:
        value = wire(aggregate(rows, op, key))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        assert shown[f"{op}_{key}"] == (pytest.approx(value, rel=1e-9) if is_number else value), (
            op,
            key,
        )


def wire(value: Any) -> Any:
    """A plain value as JSON has it."""
    if isinstance(value, datetime):
        return wire_timestamp(value)
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Fraction) else value


SEARCHED = 'aAä%_\\"\n\t:,{} /\x7f'
"""With signs that JSON writes otherwise, and those that it writes between values."""


@pytest.mark.long
@relaxed
@given(
    present=rows,
    notes=st.lists(st.text(alphabet=SEARCHED, max_size=4), max_size=4),
    text=st.text(alphabet=SEARCHED, min_size=1, max_size=2),
)
async def test_search_reads_values_and_not_their_document(
    database: Database,
    typed: tuple[Space, UUID],
    keys: Any,
    present: list[Row],
    notes: list[str],
    text: str,
) -> None:
    for row, note in zip(present, notes, strict=False):
        row.data["note"] = note
    async with stored(database, typed, present) as work:
        found = await walk(work, typed, keys, search=text, limit=200)
    matching = [
        row
        for row in present
        if not row.archived
        and not row.trashed
        and any(text.lower() in str(one).lower() for one in (row.title, row.data.get("note", "")))
    ]
    assert found == [row.id for row in ordered(matching, [])]


@pytest.mark.long
@relaxed
@given(present=rows, text=st.text(alphabet="aAbBäÄ%_\\é🙂", min_size=1, max_size=3))
async def test_search_finds_pieces_of_text_in_any_case(
    database: Database, typed: tuple[Space, UUID], keys: Any, present: list[Row], text: str
) -> None:
    async with stored(database, typed, present) as work:
        found = await walk(work, typed, keys, search=text, limit=200)

    def contains(value: Any) -> bool:
        return isinstance(value, str) and text.lower() in value.lower()

    matching = [
        row
        for row in present
        if not row.archived
        and not row.trashed
        and (contains(row.title) or contains(row.data.get("note")))
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
        {"at": "2026-05-20T22:30:00.000Z"},
        {"field": "at", "op": "before", "value": "9999-12-31", "timezone": "America/New_York"},
        True,
    ),
    (
        {"at": "2026-05-20T22:30:00.000Z"},
        {"field": "at", "op": "lte", "value": "0001-01-01", "timezone": "Europe/Berlin"},
        False,
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
    ({"note": ""}, {"field": "note", "op": "lt", "value": "a"}, True),
    ({"note": "abc"}, {"field": "note", "op": "starts_with", "value": "AB"}, True),
    ({"note": "x" * 150}, {"field": "note", "op": "starts_with", "value": "x" * 101}, True),
    ({"note": "x" * 150}, {"field": "note", "op": "starts_with", "value": "x" * 100 + "y"}, False),
    ({"note": "x" * 150}, {"field": "note", "op": "gt", "value": "x" * 120}, True),
    ({"note": "x" * 150}, {"field": "note", "op": "lt", "value": "x" * 120}, False),
    ({"note": "x" * 150}, {"field": "note", "op": "eq", "value": "x" * 149}, False),
    ({"place": None}, {"field": "place", "op": "is_empty"}, True),
    ({"done": "yes"}, {"field": "done", "op": "eq", "value": False}, True),
    ({"note": "x"}, {"field": "note", "op": "eq", "value": "'; SELECT pg_sleep(5)--"}, False),
]


@pytest.mark.parametrize("few", [None, 0, 5])
@pytest.mark.parametrize(("data", "leaf", "matches"), EDGES)
async def test_edges(
    database: Database,
    typed: tuple[Space, UUID],
    keys: Any,
    data: dict[str, Any],
    leaf: dict[str, Any],
    matches: bool,
    few: int | None,
) -> None:
    row = Row(uuid4(), "T", data, 1, NOW, archived=False)
    sorted_too = leaf["field"] in SORTABLE and few == 0
    query: dict[str, Any] = {"sorts": [{"field": leaf["field"]}]} if sorted_too else {}
    async with stored(database, typed, [row], few) as work:
        found = await walk(work, typed, keys, filter=leaf, limit=5, **query)
        rest = await walk(work, typed, keys, filter={"not": leaf}, limit=5, **query)
    assert (found, rest) == (([row.id], []) if matches else ([], [row.id]))

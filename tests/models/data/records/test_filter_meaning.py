"""A filter says the same of records in PostgreSQL and of their values in memory."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select, text

from models.core.filters.evaluation import fold
from models.core.filters.grammar import OPERATORS, Op, ValueForm
from models.data.databases.field_changes import create_field
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import TITLE_KEY, FieldKind, FieldSpec, FieldSpecs, Option
from models.data.fields.rules.values import KIND_RULES, ResultKind, value_form
from models.data.fields.shapes import CreateField
from models.data.records.rules.links import side_of
from models.data.records.rules.query.filters import holds, read_filter
from models.data.records.rules.query.sql import filter_condition
from models.data.records.tables import record, record_link
from runtime.clock import wire_timestamp
from runtime.database import Database, UnitOfWork
from tests.support.exploring import examples
from tests.support.spaces import Space

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
IDS = [str(uuid.UUID(int=number)) for number in (1, 2, 3)]
KEYS = ["low", "high", "mid"]
_OPTIONS = tuple(
    Option(id=key, key=key, name=key, color="gray", order=place) for place, key in enumerate(KEYS)
)


def _spec(key: str, kind: FieldKind, **more: Any) -> FieldSpec:
    return FieldSpec(id=uuid.uuid4(), key=key, label=key, kind=kind, options=_OPTIONS, **more)


_DERIVED = {FieldKind.FORMULA, FieldKind.ROLLUP}
FIELDS: FieldSpecs = {
    spec.key: spec
    for spec in (
        _spec(TITLE_KEY, FieldKind.TEXT),
        *(_spec(kind.value, kind) for kind in KIND_RULES if kind is not FieldKind.RELATION),
        *(
            _spec(f"{kind.value}_{result.value}", kind, settings={"resultKind": result.value})
            for kind in _DERIVED
            for result in ResultKind
        ),
    )
}
"""A field of every kind and every result; the relation is the one of the database."""

TIMERS = {key for key, spec in FIELDS.items() if spec.kind is FieldKind.TIMER}
NO_TIME = {"totalMs": 0}
"""What a record shows whose timer was never started."""

texts = st.text(alphabet="aAbI%_\\éÉİıΣσςßẞ🙂", max_size=4)
numbers = st.sampled_from([-1, 0, 0.1, 0.30000000000000004, 1, 1.0, 2.5, 1e23, 10**23, 2**53 + 1])
days = st.sampled_from(["0001-01-01", "2026-05-19", "2026-05-20", "2026-05-21", "9999-12-31"])
moments = st.sampled_from(
    ["2026-05-19T23:59:59.999Z", "2026-05-20T00:00:00.000Z", "2026-05-20T12:00:00.000Z"]
)
ids = st.lists(st.sampled_from(IDS), max_size=3, unique=True)
keys = st.lists(st.sampled_from(KEYS), max_size=3, unique=True)
scalars = st.sampled_from([1, 1.0, 0, 2.5, "a", "1", "", True, False])
anything: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 7, "", "soon", "low", [], ["low"], {}, {"low": 1}, [[]], "2026-05-20"]
)
"""Also what no field of some kind holds, unless its kind was changed."""

VALUES: dict[ValueForm, st.SearchStrategy[Any]] = {
    ValueForm.TEXT: texts,
    ValueForm.NUMBER: numbers,
    ValueForm.BOOLEAN: st.booleans(),
    ValueForm.DAY: days,
    ValueForm.MOMENT: moments,
    ValueForm.TIME: st.sampled_from(["09:30", "09:30:15", "10:00"]),
    ValueForm.OPTION: st.sampled_from(KEYS),
    ValueForm.OPTIONS: keys,
    ValueForm.USER: st.sampled_from(IDS),
    ValueForm.USERS: ids,
    ValueForm.FILES: ids,
    ValueForm.VALUES: st.lists(scalars, max_size=3),
    ValueForm.OPAQUE: anything,
}
ONE: dict[ValueForm, st.SearchStrategy[Any]] = {
    **VALUES,
    ValueForm.MOMENT: moments | days | st.just("2026-05-20T14:00:00+02:00"),
    ValueForm.OPTIONS: st.sampled_from(KEYS),
    ValueForm.USERS: st.sampled_from(IDS),
    ValueForm.FILES: st.sampled_from(IDS),
    ValueForm.VALUES: scalars,
    ValueForm.RECORDS: st.nothing(),
}
"""What an operand of one value may be; records are those there are."""


@dataclass(frozen=True)
class Row:
    id: uuid.UUID
    title: str
    data: dict[str, Any]
    computed: dict[str, Any]
    number: int
    created_at: datetime
    links: list[int] = field(default_factory=list)

    def values(self, rows: Sequence["Row"], relation: str) -> dict[str, Any]:
        """The values as an event of the record tells them."""
        at = wire_timestamp(self.created_at)
        linked = {str(rows[other].id) for one, other in _pairs(rows) if rows[one].id == self.id} | {
            str(rows[one].id) for one, other in _pairs(rows) if rows[other].id == self.id
        }
        return {
            **self.data,
            **self.computed,
            **{key: self.computed.get(key, NO_TIME)["totalMs"] for key in TIMERS},
            TITLE_KEY: self.title,
            "auto_number": self.number,
            "created_at": at,
            "updated_at": at,
            "created_by": None,
            "updated_by": None,
            relation: sorted(linked),
        }


def _pairs(rows: Sequence[Row]) -> set[tuple[int, int]]:
    return {
        (min(own, place % len(rows)), max(own, place % len(rows)))
        for own, row in enumerate(rows)
        for place in row.links
    }


times = st.fixed_dictionaries({"totalMs": st.integers(0, 3), "runningEntryId": st.none()})


def _documents(*, computed: bool) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            spec.key: times if spec.key in TIMERS else VALUES[value_form(spec)] | anything
            for spec in FIELDS.values()
            if (spec.computed if computed else spec.stored and not spec.title)
        },
    )


present = st.lists(
    st.builds(
        Row,
        id=st.uuids(version=4),
        title=texts,
        data=_documents(computed=False),
        computed=_documents(computed=True),
        number=st.integers(1, 3),
        created_at=st.sampled_from([NOW - timedelta(hours=hours) for hours in (0, 12, 13)]),
        links=st.lists(st.integers(0, 5), max_size=2),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row.id,
)


@st.composite
def leaves(draw: st.DrawFn, relation: str, rows: Sequence[Row]) -> dict[str, Any]:
    """A leaf of any field with any operator it takes."""
    key = draw(st.sampled_from([*FIELDS, relation]))
    form = ValueForm.RECORDS if key == relation else value_form(FIELDS[key])
    op = draw(st.sampled_from(OPERATORS[form]))
    known = st.sampled_from([str(row.id) for row in rows])
    one = known if form is ValueForm.RECORDS else ONE[form]
    operand: st.SearchStrategy[Any]
    match op:
        case Op.IS_EMPTY | Op.IS_NOT_EMPTY:
            return {"field": key, "op": op.value}
        case Op.HAS_ANY | Op.HAS_ALL | Op.HAS_NONE:
            operand = st.lists(one, max_size=3)
        case Op.IN | Op.NOT_IN:
            points = moments if form is ValueForm.MOMENT else one
            operand = st.lists(points, max_size=3)
        case Op.BETWEEN:
            ends = st.lists(one, min_size=2, max_size=2)
            operand = ends.filter(lambda ends: ends[0] < ends[1])
        case Op.RELATIVE:
            operand = st.sampled_from(["yesterday", "today", "this_week", "last_year"])
        case Op.WITHIN:
            operand = st.fixed_dictionaries(
                {
                    "unit": st.sampled_from(["day", "month"]),
                    "count": st.integers(1, 2),
                    "direction": st.sampled_from(["past", "future"]),
                }
            )
        case _:
            operand = one
    leaf = {"field": key, "op": op.value, "value": draw(operand)}
    zone = draw(st.none() | st.sampled_from(["UTC", "Asia/Tokyo", "America/New_York"]))
    return leaf if zone is None else {**leaf, "timezone": zone}


@st.composite
def trees(draw: st.DrawFn, relation: str, rows: Sequence[Row]) -> dict[str, Any]:
    return draw(
        st.recursive(
            leaves(relation, rows),
            lambda inner: (
                inner.map(lambda part: {"not": part})
                | st.lists(inner, max_size=3).map(lambda parts: {"and": parts})
                | st.lists(inner, max_size=3).map(lambda parts: {"or": parts})
            ),
            max_leaves=4,
        )
    )


Table = tuple[Space, uuid.UUID, FieldSpec]


@pytest_asyncio.fixture(scope="session")
async def table(_watched_database: Database, keys: Any) -> Table:
    """A database whose records are linked with each other, committed once."""
    from tests.support.spaces import make_space  # noqa: PLC0415

    space = await make_space(_watched_database, keys)
    async with _watched_database.transaction() as work:
        body = CreateDatabase.model_validate({"label": "Things", "fields": []})
        made = (await create_database(work, space.actor, body)).id
        itself = {"databaseId": str(made), "symmetric": True}
        links = {"label": "Links", "kind": "relation", "settings": itself}
        await create_field(work, space.actor, made, CreateField.model_validate(links))
        schema = await load_schema(work, space.id, made)
        return space, made, schema.fields["links"]


async def _write(work: UnitOfWork, table: Table, rows: Sequence[Row]) -> None:
    space, database_id, relation = table
    values = [
        {
            "id": row.id,
            "workspace_id": space.id,
            "database_id": database_id,
            "title": row.title,
            "data": row.data,
            "computed": row.computed,
            "number": row.number,
            "archived": False,
            "created_at": row.created_at,
            "updated_at": row.created_at,
        }
        for row in rows
    ]
    await work.execute(insert(record), values)
    side = side_of(relation)
    common = {"workspace_id": space.id, "field_id": side.field_id}
    places = {"position": 0, "target_position": 0}
    pairs = {side.oriented(rows[one].id, rows[other].id) for one, other in _pairs(rows)}
    if pairs:
        links = [{**common, **places, "record_id": one, "target_id": two} for one, two in pairs]
        await work.execute(insert(record_link), links)


@pytest.mark.long
@settings(
    max_examples=examples(60, explored=6_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=present, data=st.data())
async def test_postgresql_and_memory_agree(
    *, database: Database, table: Table, rows: list[Row], data: st.DataObject
) -> None:
    _, database_id, relation = table
    fields = {**FIELDS, relation.key: relation}
    raw = data.draw(trees(relation.key, rows), label="filter")
    tree = read_filter(raw, fields, NOW)
    async with database.engine.connect() as connection:
        work = UnitOfWork(connection)
        await _write(work, table, rows)
        asked = select(record.c.id).where(
            record.c.database_id == database_id, filter_condition(tree)
        )
        found = {row.id for row in await work.execute(asked)}
    expected = {row.id for row in rows if holds(tree, row.values(rows, relation.key))}
    assert found == expected, json.dumps(raw)


async def test_letters_have_the_same_lower_case(database: Database) -> None:
    """Of every letter both know: PostgreSQL follows a later edition of Unicode."""
    letters = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]
    async with database.engine.connect() as connection:
        rows = await connection.execute(
            text('SELECT c, lower(c COLLATE "pg_c_utf8") FROM unnest(CAST(:all AS text[])) c'),
            {"all": letters},
        )
        pairs = [(letter, folded) for letter, folded in rows]
    other = [(one, low, fold(one)) for one, low in pairs if fold(one) != low and one != fold(one)]
    assert other == []

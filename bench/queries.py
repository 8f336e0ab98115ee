"""Filter, sort and limit over many records, against a typed table made by hand with its indexes."""

import asyncio
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import psycopg
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from bench.figures import Figure, quantile
from bench.platform import Platform
from bench.rounds import Rounds
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import Schema
from models.data.records.rules.query.plan import read_query
from models.data.records.rules.query.routes import Route, pages
from models.data.records.shapes import RecordQuery
from runtime.clock import utc_now
from runtime.database import Database

SHOWN = 50
INDEXED_SECONDS = 1_200

FIELDS = [
    {"label": "Price", "kind": "number"},
    {"label": "Due", "kind": "date"},
    {"label": "Code", "kind": "text"},
    {"label": "State", "kind": "select", "options": [{"name": n} for n in ("Open", "Done")]},
    {"label": "Note", "kind": "long_text"},
]

TYPED = """
CREATE TABLE typed_record AS SELECT id, title, (data->>'price')::numeric AS price,
    (data->>'due')::date AS due, (data->>'code') COLLATE "C" AS code, data->>'state' AS state,
    data->>'note' AS note, archived, created_at, updated_at
FROM record WHERE database_id = %s;
"""
FILL = """
INSERT INTO record (id, workspace_id, database_id, title, data, archived, created_at, updated_at)
SELECT uuidv7(), %s, %s, 'Record ' || n, jsonb_build_object(
        'price', round((random() * 100000)::numeric, 2),
        'due', (date '2016-01-01' + (random() * 3650)::int)::text,
        'code', substr(md5(n::text), 1, 12),
        'state', CASE WHEN n %% 3 = 0 THEN 'open' ELSE 'done' END,
        'note', repeat(md5((n + 1)::text) || ' ', 3)), n %% 50 = 0, now(), now()
FROM generate_series(1, %s) n
"""


@dataclass(frozen=True, slots=True)
class Question:
    """The records from a value on, in the order of that value."""

    name: str
    column: str
    value: Callable[[random.Random], Any]

    def body(self, value: Any) -> dict[str, Any]:
        leaf = {"field": self.column, "op": "gte", "value": value}
        return {"filter": leaf, "sorts": [{"field": self.column}], "limit": SHOWN}

    @property
    def by_hand(self) -> str:
        return (
            f"SELECT * FROM typed_record WHERE {self.column} >= %s AND NOT archived"  # noqa: S608
            f" ORDER BY {self.column}, id LIMIT {SHOWN + 1}"
        )


QUESTIONS = [
    Question("number", "price", lambda dice: dice.randrange(99_000)),
    Question("date", "due", lambda dice: f"{dice.randint(2016, 2024)}-{dice.randint(1, 12):02}-15"),
    Question("text", "code", lambda dice: f"{dice.randrange(0xF000):04x}"),
]


async def query_rates(
    platform: Platform, floor: httpx2.AsyncClient, rounds: Rounds, count: int, records: int
) -> list[Figure]:
    """Milliseconds at the database and over HTTP, one query at a time."""
    schema = await _prepared(platform, records)
    figures = []
    for question in QUESTIONS:
        name = f"filter+sort+limit {SHOWN} of {records:,}: {question.name}"
        statement = Figure(f"{name}, statement", "ms", at_most=3)
        request = Figure(f"{name}, request", "ms", at_most=3)
        for _ in rounds:
            await _statements(platform, schema, question, count, statement)
            await _requests(platform, floor, schema, question, count, request)
        figures += [statement, request]
    return figures


async def _prepared(platform: Platform, records: int) -> Schema:
    workspace_id = platform.connection["workspaceId"]
    made = await platform.post(
        f"/v1/workspaces/{workspace_id}/databases", {"label": "Many", "fields": FIELDS}
    )
    database_id = UUID(made["id"])
    database = platform.database
    await database.execute(FILL, [workspace_id, database_id, records])
    await database.execute(TYPED.replace("%s", f"'{database_id}'"))
    for column in ("price", "due", "code"):
        await database.execute(f"CREATE INDEX ON typed_record ({column}, id)")
    for question in QUESTIONS:
        body = {"sorts": [{"field": question.column}], "limit": 1}
        await platform.post(f"/v1/databases/{database_id}/records/query", body)
    await _indexed(platform, database_id)
    for table in ("record", "record_index", "typed_record"):
        await database.execute(f"VACUUM ANALYZE {table}")
    reader = Database(platform.database_url)
    async with reader.reading() as work:
        schema = await load_schema(work, UUID(workspace_id), database_id)
    await reader.close()
    return schema


async def _indexed(platform: Platform, database_id: UUID) -> None:
    """Wait until the jobs have filled the index of every requested field."""
    query = "SELECT count(*) FROM field WHERE database_id = %s AND index_ready"
    async with asyncio.timeout(INDEXED_SECONDS):
        while True:
            row = await (await platform.database.execute(query, [database_id])).fetchone()
            assert row is not None
            if row[0] == len(QUESTIONS):
                return
            await asyncio.sleep(0.2)


async def _statements(
    platform: Platform, schema: Schema, question: Question, count: int, figure: Figure
) -> None:
    dice = random.Random(1)  # noqa: S311  # the same questions in every round
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(count):
        value = question.value(dice)
        text, parameters = _compiled(schema, question.body(value))
        found = await _timed(platform.database, text, parameters, ours)
        assert found == await _timed(platform.database, question.by_hand, [value], theirs)
    figure.add(quantile(ours, 0.5) * 1000, quantile(theirs, 0.5) * 1000)
    figure.tail(ours, theirs)


def _compiled(schema: Schema, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement that the API sends for a query."""
    query = read_query(RecordQuery.model_validate(body), schema.fields, utc_now())
    (statement, *_) = pages(schema, query, Route(along=True), None, SHOWN + 1)
    compiled = statement.compile(dialect=PGDialect_psycopg())  # type: ignore[no-untyped-call]
    return str(compiled), {
        name: Jsonb(value) if isinstance(compiled.binds[name].type, JSONB) else value
        for name, value in compiled.params.items()
    }


async def _timed(
    database: psycopg.AsyncConnection[Any], text: str, parameters: Any, times: list[float]
) -> list[Any]:
    started = time.perf_counter()
    rows = await (await database.execute(text, parameters)).fetchall()
    times.append(time.perf_counter() - started)
    return [row[0] for row in rows]


async def _requests(
    platform: Platform,
    floor: httpx2.AsyncClient,
    schema: Schema,
    question: Question,
    count: int,
    figure: Figure,
) -> None:
    dice = random.Random(2)  # noqa: S311  # the same questions in every round
    path = f"/v1/databases/{schema.database_id}/records/query"
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(count):
        value = question.value(dice)
        started = time.perf_counter()
        found = (await platform.post(path, question.body(value)))["records"]
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        answer = await floor.get(f"/typed/{question.column}", params={"least": value})
        rows = json.loads(answer.content)
        theirs.append(time.perf_counter() - started)
        assert [one["id"] for one in found] == [one["id"] for one in rows]
    figure.add(quantile(ours, 0.5) * 1000, quantile(theirs, 0.5) * 1000)
    figure.tail(ours, theirs)

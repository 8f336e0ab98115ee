"""Records over HTTP: create, read, change, list, query, and everything that must be refused."""

import time
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import func, select

from models.core.access.rules import Role, Scope
from models.data.records.tables import record
from tests.support.client import Client
from tests.support.spaces import Space

FIELDS: list[dict[str, Any]] = [
    {"label": "Price", "kind": "number", "settings": {"min": 0}},
    {"label": "Note", "kind": "long_text"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Done"}]},
    {"label": "Due", "kind": "date"},
    {"label": "Code", "kind": "text", "required": True, "defaultValue": "none"},
    {"label": "Serial", "kind": "auto_number"},
    {"label": "Born", "kind": "created_at"},
    {"label": "Maker", "kind": "created_by"},
]


async def make(client: Client, space: Space, fields: list[dict[str, Any]] = FIELDS) -> str:
    answer = await client.post(
        f"{space.path}/databases", json={"label": "Things", "fields": fields}
    )
    assert answer.status_code == 201, answer.text
    return f"/v1/databases/{answer.json()['data']['id']}/records"


@pytest_asyncio.fixture
async def records(client: Client, space: Space) -> str:
    """The path of the records of a new database."""
    return await make(client, space)


async def create(client: Client, records: str, **body: Any) -> Any:
    answer = await client.post(records, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def stored(space: Space) -> list[Any]:
    """Every record of the workspace, to see that a refusal changed nothing."""
    async with space.database.transaction() as work:
        statement = select(record).where(record.c.workspace_id == space.id).order_by(record.c.id)
        return [tuple(row) for row in await work.rows(statement)]


async def test_a_record_has_the_shape_of_the_interface(
    client: Client, space: Space, records: str
) -> None:
    made = await create(client, records, title="First", data={"price": 9.5, "state": "open"})
    assert made.keys() == {
        "id", "workspaceId", "databaseId", "title", "data", "relations", "computed",
        "system", "related", "archived", "createdByUserId", "updatedByUserId",
        "createdAt", "updatedAt",
    }  # fmt: skip
    assert made["data"] == {"title": "First", "price": 9.5, "state": "open", "code": "none"}
    assert made["system"] == {
        "serial": 1,
        "born": made["createdAt"],
        "maker": str(space.user_id),
    }
    assert (made["relations"], made["computed"], made["related"]) == ({}, {}, {})
    assert made["createdByUserId"] == made["updatedByUserId"] == str(space.user_id)
    read = await client.get(f"/v1/records/{made['id']}")
    assert read.json()["data"] == made
    listed = await client.get(records)
    assert listed.json()["data"] == {"records": [made], "cursor": None}


async def test_a_patch_merges_clears_and_archives(client: Client, records: str) -> None:
    made = await create(client, records, data={"title": "A", "price": 1, "note": "n"})
    path = f"/v1/records/{made['id']}"
    answer = await client.patch(
        path, json={"title": "B", "data": {"price": None, "due": "2026-01-01"}}
    )
    changed = answer.json()["data"]
    assert changed["data"] == {"title": "B", "note": "n", "due": "2026-01-01", "code": "none"}
    assert changed["updatedAt"] > made["updatedAt"]
    assert (await client.patch(path, json={"archived": True})).json()["data"]["archived"] is True
    assert (await client.get(records)).json()["data"]["records"] == []
    assert (await client.get(path)).status_code == 200
    assert (await client.patch(path, json={"archived": False})).json()["data"]["archived"] is False


async def test_a_record_is_updated_if_its_version_matches(client: Client, records: str) -> None:
    made = await create(client, records)
    path = f"/v1/records/{made['id']}"

    async def patch(header: str) -> int:
        answer = await client.patch(path, json={"title": "x"}, headers={"If-Match": header})
        return answer.status_code

    assert await patch(f'"{made["updatedAt"]}"') == 200
    assert await patch(made["updatedAt"]) == 409
    assert await patch("yesterday") == 400
    assert await patch("*") == 200


async def test_the_list_is_paged_newest_first(client: Client, records: str) -> None:
    made = [(await create(client, records))["id"] for _ in range(7)]
    found: list[str] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        data = (await client.get(records, params=query)).json()["data"]
        found += [one["id"] for one in data["records"]]
        if data["cursor"] is None:
            break
        query["cursor"] = data["cursor"]
    assert found == made[::-1]


async def query(client: Client, records: str, **body: Any) -> Any:
    answer = await client.post(f"{records}/query", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_a_query_filters_sorts_searches_and_projects(client: Client, records: str) -> None:
    for price in (3, 1, 2, None):
        await create(client, records, title=f"Item {price}", data={"price": price, "note": "same"})
    found = await query(
        client,
        records,
        filter={
            "and": [
                {"field": "price", "op": "gte", "value": 1},
                {"not": {"field": "price", "op": "eq", "value": 3}},
            ]
        },
        sorts=[{"field": "price", "direction": "desc"}],
        search="SAME",
        fields=["price", "serial"],
    )
    assert [one["data"] for one in found["records"]] == [{"price": 2}, {"price": 1}]
    assert [one["system"] for one in found["records"]] == [{"serial": 3}, {"serial": 2}]
    assert [one["title"] for one in found["records"]] == ["Item 2", "Item 1"]
    assert len((await query(client, records))["records"]) == 4


async def test_a_cursor_continues_one_query_only(
    client: Client, space: Space, records: str
) -> None:
    for price in range(4):
        await create(client, records, data={"price": price})
    asked = {"sorts": [{"field": "price"}], "limit": 2}
    cursor = (await query(client, records, **asked))["cursor"]
    rest = await query(client, records, **asked, cursor=cursor)
    assert [one["data"]["price"] for one in rest["records"]] == [2, 3]
    assert rest["cursor"] is None
    other = await make(client, space)
    for path, body in (
        (records, {"sorts": [{"field": "price", "direction": "desc"}], "limit": 2}),
        (records, {**asked, "search": "x"}),
        (records, {**asked, "includeArchived": True}),
        (other, asked),
    ):
        answer = await client.post(f"{path}/query", json={**body, "cursor": cursor})
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "cursor")
    for altered in ("", "x" * 5000, cursor.swapcase(), "é"):
        answer = await client.post(f"{records}/query", json={**asked, "cursor": altered})
        assert answer.status_code == 400
    answer = await client.get(records, params={"cursor": cursor})
    assert answer.status_code == 400


async def test_long_sorted_text_keeps_its_place_across_pages(client: Client, space: Space) -> None:
    records = await make(client, space, [{"label": f"T{n}", "kind": "text"} for n in range(1, 5)])
    keys = ["title", "t1", "t2", "t3", "t4"]
    made = []
    for n in range(5):
        data = dict.fromkeys(keys, "🙂" * 3_000 + str(n))
        made.append((await create(client, records, data=data))["id"])
    found: list[str] = []
    asked: dict[str, Any] = {"limit": 2, "sorts": [{"field": key} for key in keys]}
    while True:
        page = await query(client, records, **asked)
        found += [one["id"] for one in page["records"]]
        if page["cursor"] is None:
            break
        asked["cursor"] = page["cursor"]
    assert found == made


BAD_WRITES: list[tuple[dict[str, Any], str]] = [
    ({"data": {"nobody": 1}}, "data.nobody"),
    ({"data": {"price": "5"}}, "data.price"),
    ({"data": {"price": -1}}, "data.price"),
    ({"data": {"state": "Opened"}}, "data.state"),
    ({"data": {"due": "01.01.2026"}}, "data.due"),
    ({"data": {"code": None}}, "data.code"),
    ({"data": {"code": ""}}, "data.code"),
    ({"data": {"serial": 7}}, "data.serial"),
    ({"data": {"title": 7}}, "data.title"),
    ({"title": "A", "data": {"title": "B"}}, "data.title"),
    ({"title": 7}, "title"),
    ({"data": []}, "data"),
    ({"relations": {"price": []}}, "relations.price"),
    ({"id": str(uuid4())}, "id"),
    ({"createdByUserId": str(uuid4())}, "createdByUserId"),
]


@pytest.mark.parametrize(("body", "path"), BAD_WRITES)
async def test_bad_writes_are_refused_where_they_are_wrong(
    client: Client, space: Space, records: str, body: dict[str, Any], path: str
) -> None:
    made = await create(client, records, title="before", data={"price": 1})
    before = await stored(space)
    for answer in (
        await client.post(records, json=body),
        await client.patch(f"/v1/records/{made['id']}", json=body),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
        assert answer.json()["details"][0]["path"] == path
    assert await stored(space) == before


RAW = [
    b'{"data": {"note": "a\\u0000b"}}',
    b'{"data": {"note": "a\\ud800b"}}',
    b'{"data": {"price": NaN}}',
    b'{"data": {"price": 1e999}}',
    b'{"data": {"price": 1, "price": 2}}',
    b'{"data": {"' + b"k" * 10_000 + b'": 1}}',
    b'{"data": {' + b",".join(b'"k%d":1' % n for n in range(50_000)) + b"}}",
    b'{"data": {"note": ' + b"[" * 500 + b"]" * 500 + b"}}",
    b"null",
]


@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
async def test_hostile_bodies_are_refused_at_once(
    client: Client, space: Space, records: str, raw: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    started = time.thread_time()
    for path in (records, f"{records}/query"):
        answer = await client.post(path, content=raw, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
        assert len(answer.content) < 20_000
    assert time.thread_time() - started < 2
    assert await stored(space) == []


BAD_QUERIES: list[tuple[dict[str, Any], str]] = [
    ({"filter": []}, "filter"),
    ({"filter": {"field": "nobody", "op": "eq", "value": 1}}, "filter.field"),
    ({"filter": {"field": "price", "op": "eq", "value": "1"}}, "filter.value"),
    ({"filter": {"field": "price", "op": "contains", "value": "1"}}, "filter.op"),
    ({"filter": {"field": "note", "op": "eq", "value": "x", "x": 1}}, "filter.x"),
    ({"sorts": [{"field": "nobody"}]}, "sorts.0.field"),
    ({"sorts": [{"field": "maker"}]}, "sorts.0.field"),
    ({"sorts": [{"field": "price", "direction": "up"}]}, "sorts.0.direction"),
    ({"sorts": [{"field": "price"}] * 6}, "sorts"),
    ({"fields": ["nobody"]}, "fields.0"),
    ({"limit": 0}, "limit"),
    ({"limit": "5"}, "limit"),
    ({"limit": 2.5}, "limit"),
    ({"timezone": "Mars/Base"}, "timezone"),
    ({"search": "x" * 201}, "search"),
    ({"where": {}}, "where"),
]


@pytest.mark.parametrize(("body", "path"), BAD_QUERIES)
async def test_bad_queries_are_refused_where_they_are_wrong(
    client: Client, records: str, body: dict[str, Any], path: str
) -> None:
    answer = await client.post(f"{records}/query", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path


async def test_more_than_the_maximum_is_the_maximum(client: Client, records: str) -> None:
    assert (await query(client, records, limit=10**9))["records"] == []


async def test_text_that_looks_like_sql_is_text(client: Client, records: str) -> None:
    hostile = "'; SELECT pg_sleep(600); DROP TABLE record;--"
    made = await create(client, records, title=hostile, data={"note": hostile})
    found = await query(
        client,
        records,
        search=hostile,
        filter={"field": "note", "op": "contains", "value": hostile},
        sorts=[{"field": "note"}],
    )
    assert [one["id"] for one in found["records"]] == [made["id"]]
    keyed = {"filter": {"field": hostile, "op": "eq", "value": "x"}}
    assert (await client.post(f"{records}/query", json=keyed)).status_code == 400


async def test_foreign_ids_answer_as_unknown_ones(
    client: Client, space: Space, foreign: Space, records: str
) -> None:
    other = client.with_token(foreign.token)
    theirs = await make(other, foreign)
    their_record = (await create(other, theirs, title="theirs"))["id"]
    their_database = theirs.split("/")[3]
    before = await stored(foreign)
    body = {"data": {"price": "not even a number"}}

    async def pair(use: Any, real: str) -> tuple[Any, Any]:
        return await use(real), await use(str(uuid4()))

    for use, real in (
        (lambda id_: client.get(f"/v1/records/{id_}"), their_record),
        (lambda id_: client.patch(f"/v1/records/{id_}", json=body), their_record),
        (lambda id_: client.get(f"/v1/databases/{id_}/records"), their_database),
        (lambda id_: client.post(f"/v1/databases/{id_}/records", json=body), their_database),
        (lambda id_: client.post(f"/v1/databases/{id_}/records/query", json=[]), their_database),
        (lambda id_: client.post(records, json={"templateId": id_}), their_record),
    ):
        found, unknown = await pair(use, real)
        assert (found.status_code, found.content) == (404, unknown.content)
    assert await stored(foreign) == before
    assert await stored(space) == []


async def test_reading_and_writing_need_their_scope_and_level(
    client: Client, space: Space, records: str
) -> None:
    made = await create(client, records)
    path = f"/v1/records/{made['id']}"
    _, token = await space.member(Role.VIEWER)
    viewer = client.with_token(token)
    unscoped = client.with_token(
        await space.key([scope for scope in Scope if not scope.startswith("records:")])
    )
    before = await stored(space)
    for caller, reads in ((viewer, 200), (unscoped, 403)):
        assert (await caller.get(records)).status_code == reads
        assert (await caller.get(path)).status_code == reads
        assert (await caller.post(f"{records}/query", json={})).status_code == reads
        assert (await caller.post(records, json={})).status_code == 403
        assert (await caller.patch(path, json={"title": "x"})).status_code == 403
    assert await stored(space) == before
    async with space.database.transaction() as work:
        count = select(func.count()).where(record.c.workspace_id == space.id)
        assert await work.scalar(count) == 1


async def test_an_empty_body_makes_an_empty_record(client: Client, records: str) -> None:
    made = await create(client, records)
    assert (made["title"], made["data"]) == ("", {"title": "", "code": "none"})


@pytest.mark.parametrize("odd", ["x", "%00", "0198C5C2-7A3B-7C1D-9E4F-2B6A8D1C0E5F0", "..%2f"])
async def test_odd_ids_name_nothing(client: Client, odd: str) -> None:
    assert (await client.get(f"/v1/records/{odd}")).status_code == 404
    assert (await client.get(f"/v1/databases/{odd}/records")).status_code == 404

"""Batches of records over HTTP: all or nothing, every bad operation named, no wait in a circle."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import select

from models.core.access.rules import Role, Scope
from models.data.records.rows import CHANGES_WITH_CREATIONS
from models.data.records.tables import record
from tests.support.client import Client
from tests.support.spaces import Space

FIELDS = [
    {"label": "Price", "kind": "number", "settings": {"min": 0}},
    {"label": "Note", "kind": "long_text"},
    {"label": "Code", "kind": "text", "required": True, "defaultValue": "none"},
    {"label": "Done", "kind": "checkbox"},
    {"label": "Who", "kind": "person"},
    {"label": "Tags", "kind": "multi_select", "settings": {"allowCreate": True}},
    {"label": "Serial", "kind": "auto_number"},
]


async def make(client: Client, space: Space) -> str:
    answer = await client.post(
        f"{space.path}/databases", json={"label": "Things", "fields": FIELDS}
    )
    assert answer.status_code == 201, answer.text
    return f"/v1/databases/{answer.json()['data']['id']}/records"


@pytest_asyncio.fixture
async def records(client: Client, space: Space) -> str:
    """The path of the records of a new database."""
    return await make(client, space)


async def batch(client: Client, records: str, *operations: dict[str, Any]) -> Any:
    answer = await client.post(f"{records}/batch", json={"operations": operations})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def create(client: Client, records: str, *titles: str) -> list[Any]:
    made = await batch(client, records, *({"op": "create", "title": title} for title in titles))
    found: list[Any] = made["records"]
    return found


async def stored(space: Space) -> list[Any]:
    """Every record of the workspace with its history, to see that a refusal changed nothing."""
    async with space.database.transaction() as work:
        found: list[Any] = []
        for table in (record, CHANGES_WITH_CREATIONS):
            rows = select(table).where(table.c.workspace_id == space.id).order_by(table.c.id)
            found += [tuple(row) for row in await work.rows(rows)]
        return found


async def test_a_batch_does_everything_in_order(client: Client, records: str) -> None:
    old = await create(client, records, "changed", "archived", "back", "gone")
    await client.post(f"/v1/records/{old[2]['id']}/archive")
    done = await batch(
        client,
        records,
        {"op": "create", "title": "new", "data": {"price": 1, "tags": ["Fresh"]}},
        {"op": "update", "recordId": old[0]["id"], "data": {"price": 2, "code": "x"}},
        {"op": "archive", "recordId": old[1]["id"]},
        {"op": "restore", "recordId": old[2]["id"]},
        {"op": "delete", "recordId": old[3]["id"]},
        {"op": "upsert", "upsertBy": ["title"], "title": "upserted", "data": {"price": 3}},
    )
    assert (done["created"], done["updated"], done["deleted"]) == (2, 3, 1)
    new, changed, archived, back, gone, upserted = done["records"]
    assert new["data"] == {"title": "new", "price": 1, "tags": ["fresh"], "code": "none"}
    assert (changed["id"], changed["data"]["price"]) == (old[0]["id"], 2)
    assert (archived["archived"], back["archived"]) == (True, False)
    assert gone == old[3]
    assert upserted["title"] == "upserted"
    assert [one["system"]["serial"] for one in (new, upserted)] == [5, 6]
    for one in (new, changed, archived, back, upserted):
        assert (await client.get(f"/v1/records/{one['id']}")).json()["data"] == one
    assert (await client.get(f"/v1/records/{gone['id']}")).status_code == 404


async def test_an_upsert_finds_what_it_made(client: Client, records: str) -> None:
    operations = [
        {
            "op": "upsert",
            "upsertBy": ["title", "price"],
            "title": f"t{n}",
            "data": {"price": n, "note": "a"},
        }
        for n in range(20)
    ]
    first = await batch(client, records, *operations)
    assert (first["created"], first["updated"]) == (20, 0)
    again = await batch(client, records, *operations[::-1])
    assert (again["created"], again["updated"]) == (0, 20)
    # Nothing was asked for that was not so already, so nothing was written.
    assert again["records"] == first["records"][::-1]


async def test_an_unchecked_checkbox_is_found_by_false(client: Client, records: str) -> None:
    (made,) = await create(client, records, "untouched")
    operation = {"op": "upsert", "upsertBy": ["done"], "data": {"done": False, "note": "x"}}
    assert (await batch(client, records, operation))["records"][0]["id"] == made["id"]


async def test_every_bad_operation_is_named_and_nothing_happens(
    client: Client, space: Space, records: str
) -> None:
    one, two = await create(client, records, "one", "two")
    before = await stored(space)
    stranger = str(uuid4())
    operations: list[dict[str, Any]] = [
        {"op": "create", "title": "fine"},
        {"op": "create", "data": {"price": "5", "nobody": 1}},
        {"op": "create", "data": {"code": None}},
        {"op": "update", "recordId": one["id"], "data": {"who": [stranger]}},
        {"op": "upsert", "upsertBy": ["nobody"], "title": "x"},
        {"op": "create", "title": "a", "data": {"title": "b"}},
        {"op": "create", "relations": {"price": []}},
        {"op": "archive", "recordId": two["id"], "expectedUpdatedAt": "yesterday"},
        {"op": "archive", "recordId": one["id"]},
    ]
    answer = await client.post(f"{records}/batch", json={"operations": operations})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert {detail["path"] for detail in answer.json()["details"]} == {
        "operations.1.data.price",
        "operations.1.data.nobody",
        "operations.2.data.code",
        "operations.3.data.who",
        "operations.4.upsertBy.0",
        "operations.5.data.title",
        "operations.6.relations.price",
        "operations.7.expectedUpdatedAt",
        "operations.8.recordId",
    }
    malformed: list[dict[str, Any]] = [
        {"op": "update", "data": {"price": 1}},
        {"op": "delete", "recordId": two["id"], "title": "x"},
        {"op": "upsert", "title": "x"},
    ]
    answer = await client.post(f"{records}/batch", json={"operations": malformed})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert {detail["path"] for detail in answer.json()["details"]} == {
        "operations.0.recordId",
        "operations.1.title",
        "operations.2.upsertBy",
    }
    assert await stored(space) == before


async def test_each_of_many_bad_operations_is_named(client: Client, records: str) -> None:
    bad = {f"k{n}": n for n in range(30)}
    operations = [{"op": "create", "data": bad} for _ in range(200)]
    answer = await client.post(f"{records}/batch", json={"operations": operations})
    named = {detail["path"].split(".")[1] for detail in answer.json()["details"]}
    assert named == {str(n) for n in range(200)}
    assert len(answer.json()["details"]) <= 500


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "operations"),
        ({"operations": []}, "operations"),
        ({"operations": [{"op": "create"}] * 501}, "operations"),
        ({"operations": {"op": "create"}}, "operations"),
        ({"operations": [{"op": "drop"}]}, "operations.0.op"),
        ({"operations": [{}]}, "operations.0.op"),
        ({"operations": [{"op": "create", "id": str(uuid4())}]}, "operations.0.id"),
        ({"operations": [{"op": "create", "data": []}]}, "operations.0.data"),
        (
            {"operations": [{"op": "create"}, {"op": "update", "recordId": 5}]},
            "operations.1.recordId",
        ),
        ({"operations": [{"op": "create"}], "atomic": False}, "atomic"),
        (
            {"operations": [{"op": "restore", "recordId": str(uuid4()), "expectedUpdatedAt": ""}]},
            "operations.0.expectedUpdatedAt",
        ),
    ],
    ids=range(11),
)
async def test_bad_shapes_are_refused_where_they_are_wrong(
    client: Client, space: Space, records: str, body: Any, path: str
) -> None:
    answer = await client.post(f"{records}/batch", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path
    assert await stored(space) == []


async def test_no_record_is_meant_twice(client: Client, space: Space, records: str) -> None:
    (one,) = await create(client, records, "one")
    before = await stored(space)
    for second in (
        {"op": "delete", "recordId": one["id"]},
        {"op": "upsert", "upsertBy": ["title"], "title": "one"},
    ):
        operations = [{"op": "archive", "recordId": one["id"]}, second]
        answer = await client.post(f"{records}/batch", json={"operations": operations})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"].startswith("operations.1.")
    twins = [{"op": "upsert", "upsertBy": ["price"], "data": {"price": n}} for n in (5, 5.0)]
    answer = await client.post(f"{records}/batch", json={"operations": twins})
    assert answer.json()["details"][0]["path"] == "operations.1.upsertBy"
    mixed = [
        {"op": "upsert", "upsertBy": ["price"], "data": {"price": 1}},
        {"op": "upsert", "upsertBy": ["title"], "title": "x"},
    ]
    answer = await client.post(f"{records}/batch", json={"operations": mixed})
    assert answer.json()["details"][0]["path"] == "operations.1.upsertBy"
    assert await stored(space) == before


async def test_ids_from_elsewhere_answer_as_unknown_ones(
    client: Client, space: Space, foreign: Space, records: str
) -> None:
    other = client.with_token(foreign.token)
    theirs = (await create(other, await make(other, foreign), "theirs"))[0]["id"]
    elsewhere = (await create(client, await make(client, space), "elsewhere"))[0]["id"]
    (mine,) = await create(client, records, "mine")
    before = await stored(space), await stored(foreign)

    async def attempt(record_id: str, op: str) -> Any:
        operations = [
            {"op": "update", "recordId": mine["id"], "data": {"price": "not a number"}},
            {"op": op, "recordId": record_id},
        ]
        return await client.post(f"{records}/batch", json={"operations": operations})

    for op in ("update", "delete", "archive", "restore"):
        answers = [await attempt(one, op) for one in (theirs, elsewhere, str(uuid4()))]
        assert [answer.status_code for answer in answers] == [404] * 3
        assert len({answer.content for answer in answers}) == 1
        assert "operations.1.recordId" in answers[0].json()["message"]
    template = {"operations": [{"op": "create", "templateId": theirs}]}
    unknown = {"operations": [{"op": "create", "templateId": str(uuid4())}]}
    found = await client.post(f"{records}/batch", json=template)
    assert found.status_code == 404
    assert found.content == (await client.post(f"{records}/batch", json=unknown)).content
    assert (await stored(space), await stored(foreign)) == before


async def test_an_operation_on_what_was_changed_meanwhile_stops_the_batch(
    client: Client, space: Space, records: str
) -> None:
    one, two = await create(client, records, "one", "two")
    await client.patch(f"/v1/records/{two['id']}", json={"title": "changed"})
    before = await stored(space)
    operations = [
        {"op": "delete", "recordId": each["id"], "expectedUpdatedAt": each["updatedAt"]}
        for each in (one, two)
    ]
    answer = await client.post(f"{records}/batch", json={"operations": operations})
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert "operations.1.recordId" in answer.json()["message"]
    assert "operations.0" not in answer.json()["message"]
    assert await stored(space) == before


async def test_batches_in_opposite_order_do_not_wait_in_a_circle(
    client: Client, records: str
) -> None:
    made = await create(client, records, *(f"r{n}" for n in range(40)))
    ids = [one["id"] for one in made]

    async def change(n: int) -> Any:
        ordered = ids if n % 2 else ids[::-1]
        key = ("price", "note", "code")[n % 3]
        value = n if key == "price" else f"by {n}"
        return await batch(
            client,
            records,
            *({"op": "update", "recordId": i, "data": {key: value}} for i in ordered),
        )

    await asyncio.gather(*(change(n) for n in range(12)))
    upserts = [{"op": "upsert", "upsertBy": ["title"], "title": f"u{n}"} for n in range(40)]
    both = await asyncio.gather(
        *(batch(client, records, *upserts[:: (1, -1)[n % 2]]) for n in range(6))
    )
    assert sum(one["created"] for one in both) == 40


async def test_numbers_have_no_gaps_under_batches(client: Client, records: str) -> None:
    async def fill(n: int) -> None:
        operations: list[Any] = [{"op": "create", "title": f"{n}/{m}"} for m in range(15)]
        if n == 3:
            operations.append({"op": "create", "data": {"nobody": 1}})
        await client.post(f"{records}/batch", json={"operations": operations})

    await asyncio.gather(*(fill(n) for n in range(6)))
    found = await client.post(
        f"{records}/query", json={"limit": 200, "sorts": [{"field": "serial"}]}
    )
    shown = found.json()["data"]["records"]
    assert [one["system"]["serial"] for one in shown] == list(range(1, 76))
    # One batch, one stretch of numbers, in the order of its operations.
    for start in range(0, 75, 15):
        run = [one["title"].split("/") for one in shown[start : start + 15]]
        assert [(run[0][0], str(m)) for m in range(15)] == [tuple(each) for each in run]


async def test_a_repeated_call_has_one_effect(client: Client, space: Space, records: str) -> None:
    body = {"operations": [{"op": "create", "title": "once"}]}
    key = {"Idempotency-Key": "batch-1"}
    first = await client.post(f"{records}/batch", json=body, headers=key)
    again = await client.post(f"{records}/batch", json=body, headers=key)
    assert first.content == again.content
    assert again.headers["idempotency-replayed"] == "true"
    assert len(await stored(space)) == 2


async def test_a_batch_may_be_larger_than_other_bodies(client: Client, records: str) -> None:
    operations = [{"op": "create", "data": {"note": "x" * 190_000}} for _ in range(20)]
    done = await batch(client, records, *operations)
    assert done["created"] == 20
    raw = json.dumps({"operations": operations * 3}).encode()
    headers = {"Content-Type": "application/json"}
    answer = await client.post(f"{records}/batch", content=raw, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")


async def test_writing_needs_its_scope_and_level(
    client: Client, space: Space, records: str
) -> None:
    _, viewer = await space.member(Role.VIEWER)
    _, commenter = await space.member(Role.COMMENTER)
    unscoped = await space.key([scope for scope in Scope if scope != Scope.RECORDS_WRITE])
    body = {"operations": [{"op": "create"}]}
    for token in (viewer, commenter, unscoped):
        answer = await client.with_token(token).post(f"{records}/batch", json=body)
        assert (answer.status_code, answer.json()["error"]) == (403, "denied")
    assert await stored(space) == []

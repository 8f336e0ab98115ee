"""Queries over HTTP: groups, figures, views, relations, and what a caller must not learn."""

from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import func, select, text

from models.core.access.rules import Role
from models.data.records import queries, side_index
from models.messages.jobs.store import job
from runtime.database import UnitOfWork
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.record_indexes import index
from tests.support.related import add, add_field, make_database, relate
from tests.support.spaces import Space

Json = dict[str, Any]

FIELDS: list[dict[str, Any]] = [
    {"label": "Price", "kind": "number"},
    {"label": "Due", "kind": "date"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Done"}]},
    {"label": "Tags", "kind": "multi_select", "options": [{"name": "A"}, {"name": "B"}]},
    {"label": "Paid", "kind": "checkbox"},
    {"label": "Place", "kind": "location"},
    {"label": "Who", "kind": "person"},
]


async def ask(client: Client, database_id: str, **body: Any) -> Json:
    answer = await client.post(f"/v1/databases/{database_id}/records/query", json=body)
    assert answer.status_code == 200, answer.text
    data: Json = answer.json()["data"]
    return data


async def titles(client: Client, database_id: str, **body: Any) -> list[str]:
    return [one["title"] for one in (await ask(client, database_id, **body))["records"]]


@pytest_asyncio.fixture
async def bills(client: Client, space: Space) -> str:
    """A database of four bills."""
    database_id = await make_database(client, space, "Bills", *FIELDS)
    rows: list[Json] = [
        {"price": 10, "due": "2026-05-31", "state": "open", "tags": ["a", "b"], "paid": True},
        {"price": 2.5, "due": "2026-06-01", "state": "done", "tags": ["a"]},
        {"price": 10, "due": "2026-06-30", "state": "open", "who": [str(space.user_id)]},
        {},
    ]
    for number, data in enumerate(rows):
        await add(client, database_id, f"B{number}", data=data)
    return database_id


async def test_an_answer_has_groups_and_aggregates_where_they_are_asked_for(
    client: Client, bills: str
) -> None:
    plain = await ask(client, bills)
    assert plain.keys() == {"records", "cursor"}
    full = await ask(
        client,
        bills,
        groupBy={"field": "state"},
        aggregates=[{"op": "count"}, {"op": "sum", "field": "price", "as": "total"}],
        limit=1,
    )
    assert full.keys() == {"records", "cursor", "groups", "groupsTruncated", "aggregates"}
    assert len(full["records"]) == 1
    assert full["aggregates"] == {"count": 4, "total": 22.5}
    assert full["groups"] == [
        {"key": "open", "value": "open", "count": 2, "aggregates": {"count": 2, "total": 20}},
        {"key": "done", "value": "done", "count": 1, "aggregates": {"count": 1, "total": 2.5}},
        {"key": "", "value": None, "count": 1, "aggregates": {"count": 1, "total": None}},
    ]


async def test_records_are_grouped_in_two_levels(client: Client, bills: str) -> None:
    levels = [{"field": "due", "granularity": "month", "direction": "desc"}, {"field": "state"}]
    found = await ask(client, bills, groupBy=levels)
    assert [
        (group["key"], group["value"], group["count"], [inner["key"] for inner in group["groups"]])
        for group in found["groups"]
    ] == [
        ("2026-06", "2026-06-01", 2, ["open", "done"]),
        ("2026-05", "2026-05-01", 1, ["open"]),
        ("", None, 1, [""]),
    ]
    assert found["groups"][0]["groups"][0] == {
        "key": "open", "value": "open", "count": 1, "aggregates": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        ("day", ["2026-05-31", "2026-06-01", "2026-06-30", ""]),
        ("week", ["2026-W22", "2026-W23", "2026-W27", ""]),
        ("month", ["2026-05", "2026-06", ""]),
        ("quarter", ["2026-Q2", ""]),
        ("year", ["2026", ""]),
    ],
)
async def test_dates_are_grouped_by_stretches(
    client: Client, bills: str, granularity: str, expected: list[str]
) -> None:
    found = await ask(client, bills, groupBy={"field": "due", "granularity": granularity})
    assert [group["key"] for group in found["groups"]] == expected


async def test_a_record_is_in_the_group_of_each_of_its_values(client: Client, bills: str) -> None:
    found = await ask(client, bills, groupBy={"field": "tags"})
    assert [(group["key"], group["count"]) for group in found["groups"]] == [
        ("a", 2), ("b", 1), ("", 2),
    ]  # fmt: skip


async def test_no_answer_has_more_than_two_hundred_groups(client: Client, space: Space) -> None:
    database_id = await make_database(client, space, "Many", {"label": "N", "kind": "number"})
    for start in (0, 250):
        operations = [
            {"op": "create", "title": "x", "data": {"n": start + number}} for number in range(250)
        ]
        path = f"/v1/databases/{database_id}/records/batch"
        answer = await client.post(path, json={"operations": operations})
        assert answer.status_code == 200, answer.text
    found = await ask(client, database_id, groupBy={"field": "n"})
    assert [group["value"] for group in found["groups"]] == list(range(200))
    assert found["groupsTruncated"] is True
    narrow = {"field": "n", "op": "lt", "value": 200}
    assert (await ask(client, database_id, groupBy={"field": "n"}, filter=narrow))[
        "groupsTruncated"
    ] is False


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"aggregates": [{"op": "sum"}]}, "aggregates.0.field"),
        ({"aggregates": [{"op": "count"}, {"op": "sum", "field": "title"}]}, "aggregates.1.op"),
        ({"aggregates": [{"op": "checked", "field": "price"}]}, "aggregates.0.op"),
        ({"aggregates": [{"op": "earliest", "field": "price"}]}, "aggregates.0.op"),
        ({"aggregates": [{"op": "count_unique", "field": "who"}]}, "aggregates.0.op"),
        ({"aggregates": [{"op": "mode", "field": "price"}]}, "aggregates.0.op"),
        ({"aggregates": [{"op": "sum", "field": "nobody"}]}, "aggregates.0.field"),
        ({"aggregates": [{"op": "count"}, {"op": "count"}]}, "aggregates.1.as"),
        ({"aggregates": [{"op": "count", "as": "No Key"}]}, "aggregates.0.as"),
        ({"aggregates": [{"op": "count", "of": "x"}]}, "aggregates.0.of"),
        ({"aggregates": [{"op": "count", "as": f"n{n}"} for n in range(51)]}, "aggregates"),
        ({"groupBy": {"field": "nobody"}}, "groupBy.0.field"),
        ({"groupBy": {"field": "place"}}, "groupBy.0.field"),
        ({"groupBy": {"field": "state", "granularity": "day"}}, "groupBy.0.granularity"),
        ({"groupBy": {"field": "due", "granularity": "hour"}}, "groupBy.granularity"),
        ({"groupBy": [{"field": "state"}, {"field": "state"}]}, "groupBy.1.field"),
        ({"groupBy": []}, "groupBy"),
        ({"groupBy": [{"field": key} for key in ("state", "due", "price")]}, "groupBy"),
        ({"groupBy": "state"}, "groupBy"),
    ],
)
async def test_each_error_is_named_by_its_path(
    client: Client, bills: str, body: Json, path: str
) -> None:
    answer = await client.post(f"/v1/databases/{bills}/records/query", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["path"] == path


@pytest.mark.parametrize(
    ("directions", "expected"),
    [
        (("asc", "desc"), ["B2", "B1", "B0"]),
        (("desc", "asc"), ["B0", "B1", "B2"]),
    ],
)
async def test_records_with_equal_values_follow_the_direction_of_the_last_sort(
    client: Client, space: Space, directions: tuple[str, str], expected: list[str]
) -> None:
    database_id = await make_database(client, space, "Bills", *FIELDS)
    for number in range(3):
        await add(client, database_id, f"B{number}", data={"price": 1, "state": "open"})
    sorts = [
        {"field": key, "direction": direction}
        for key, direction in zip(("price", "state"), directions, strict=True)
    ]
    assert await titles(client, database_id, sorts=sorts) == expected
    first = await ask(client, database_id, sorts=sorts, limit=1)
    rest = await ask(client, database_id, sorts=sorts, limit=2, cursor=first["cursor"])
    assert [one["title"] for one in [*first["records"], *rest["records"]]] == expected


async def test_a_view_narrows_and_completes_a_query(client: Client, bills: str) -> None:
    manifest = {
        "filter": {"field": "state", "op": "eq", "value": "open"},
        "sorts": [{"field": "price", "direction": "desc"}, {"field": "title"}],
        "fields": [{"key": "title"}, {"key": "price"}, {"key": "due", "visible": False}],
        "aggregates": [{"op": "count"}],
    }
    made = await client.post(
        f"/v1/databases/{bills}/views",
        json={"label": "Open", "kind": "table", "manifest": manifest},
    )
    assert made.status_code == 201, made.text
    view_id = made.json()["data"]["id"]
    found = await ask(client, bills, viewId=view_id)
    assert [one["title"] for one in found["records"]] == ["B0", "B2"]
    assert found["records"][0]["data"] == {"title": "B0", "price": 10}
    assert found["aggregates"] == {"count": 2}
    narrower = {"field": "due", "op": "after", "value": "2026-06-15"}
    assert await titles(client, bills, viewId=view_id, filter=narrower) == ["B2"]
    turned = [{"field": "title", "direction": "desc"}]
    assert await titles(client, bills, viewId=view_id, sorts=turned) == ["B2", "B0"]
    first = await ask(client, bills, viewId=view_id, limit=1)
    cursor = first["cursor"]
    assert await titles(client, bills, viewId=view_id, limit=1, cursor=cursor) == ["B2"]
    refused = await client.post(
        f"/v1/databases/{bills}/records/query", json={"limit": 1, "cursor": cursor}
    )
    assert refused.json()["details"][0]["path"] == "cursor"


async def test_a_view_of_another_member_is_not_found(
    client: Client, space: Space, bills: str
) -> None:
    _, token = await space.member(Role.EDITOR)
    async with client.with_token(token) as other:
        made = await other.post(
            f"/v1/databases/{bills}/views",
            json={"label": "Mine", "kind": "table", "scope": "personal"},
        )
        assert made.status_code == 201, made.text
    path = f"/v1/databases/{bills}/records/query"
    hidden = await client.post(path, json={"viewId": made.json()["data"]["id"]})
    unknown = await client.post(path, json={"viewId": str(uuid4())})
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.content == unknown.content


async def test_relations_are_asked_for_from_both_sides(client: Client, space: Space) -> None:
    people = await make_database(client, space, "People")
    tasks = await make_database(client, space, "Tasks")
    relation = await relate(client, tasks, people, "Owners", inverseLabel="Tasks")
    inverse = next(
        field
        for field in (await client.get(f"{space.path}/databases/{people}")).json()["data"]["fields"]
        if field["id"] == relation["settings"]["inverseFieldId"]
    )["key"]
    ann, bob, cid = [await add(client, people, name) for name in ("Ann", "Bob", "Cid")]
    both = await add(client, tasks, "Both", relations={"owners": [ann, bob]})
    one = await add(client, tasks, "One", relations={"owners": [bob]})
    await add(client, tasks, "None")

    async def found(database_id: str, key: str, op: str, value: Any) -> set[str]:
        leaf = {"field": key, "op": op, "value": value}
        return {*await titles(client, database_id, filter=leaf)}

    assert await found(tasks, "owners", "has_any", [ann, cid]) == {"Both"}
    assert await found(tasks, "owners", "has_all", [ann, bob]) == {"Both"}
    assert await found(tasks, "owners", "has_none", [ann]) == {"One", "None"}
    assert await found(tasks, "owners", "contains", bob) == {"Both", "One"}
    assert await found(tasks, "owners", "is_empty", None) == {"None"}
    assert await found(people, inverse, "has_any", [one]) == {"Bob"}
    assert await found(people, inverse, "has_all", [one, both]) == {"Bob"}
    assert await found(people, inverse, "is_not_empty", None) == {"Ann", "Bob"}
    groups = (await ask(client, tasks, groupBy={"field": "owners"}))["groups"]
    assert {group["value"]: group["count"] for group in groups} == {ann: 1, bob: 2, None: 1}
    assert (await client.delete(f"/v1/records/{bob}")).status_code == 200
    assert await found(tasks, "owners", "is_empty", None) == {"None", "One"}, "not in the trash"


async def test_fields_without_access_cannot_be_queried(client: Client, space: Space) -> None:
    secret = await make_database(client, space, "Secret", {"label": "Pay", "kind": "number"})
    staff = await make_database(client, space, "Staff")
    await relate(client, staff, secret, "Row")
    lookup = {"relationFieldKey": "row", "targetFieldKey": "pay"}
    await add_field(client, staff, "Pay", "lookup", settings=lookup)
    row = await add(client, secret, "x", data={"pay": 1_000})
    await add(client, staff, "Ann", relations={"row": [row]})
    item_id = (await client.get(f"{space.path}/databases/{secret}")).json()["data"]["itemId"]
    closed = await client.patch(f"/v1/items/{item_id}", json={"accessMode": "restricted"})
    assert closed.status_code == 200, closed.text
    leaf = {"field": "pay", "op": "contains", "value": 1_000}
    assert await titles(client, staff, filter=leaf) == ["Ann"]
    _, token = await space.member(Role.EDITOR)
    questions: list[Json] = [
        {"filter": leaf},
        {"filter": {"field": "row", "op": "contains", "value": row}},
        {"groupBy": {"field": "row"}},
        {"aggregates": [{"op": "count_filled", "field": "pay"}]},
    ]
    async with client.with_token(token) as other:
        assert await titles(other, staff) == ["Ann"]
        for question in questions:
            path = f"/v1/databases/{staff}/records/query"
            answer = await other.post(path, json=question)
            assert answer.status_code == 400, (question, answer.text)
            assert "is not the key of a field" in answer.json()["message"]


async def test_only_callers_who_may_read_may_query(
    client: Client, space: Space, foreign: Space, bills: str
) -> None:
    path = f"/v1/databases/{bills}/records/query"
    for role in (Role.VIEWER, Role.COMMENTER):
        _, token = await space.member(role)
        async with client.with_token(token) as member:
            assert len(await titles(member, bills)) == 4
    _, token = await space.member(Role.GUEST)
    async with client.with_token(token) as guest:
        assert (await guest.post(path, json={})).status_code in {403, 404}
    async with client.with_token(foreign.token) as stranger:
        here = await stranger.post(path, json={})
        nowhere = await stranger.post(f"/v1/databases/{uuid4()}/records/query", json={})
        assert here.status_code == 404
        assert here.content == nowhere.content


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query takes longer than the database allows."""

    async def read(work: UnitOfWork, *_: Any) -> list[Any]:
        await work.execute(text("SET LOCAL statement_timeout = '20ms'"))
        await work.execute(text("SELECT pg_sleep(5)"))
        return []

    monkeypatch.setattr(queries, "read_page", read)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("large", [True, False])
async def test_a_query_that_takes_too_long_is_refused_and_has_its_fields_indexed(
    client: Client, space: Space, bills: str, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    monkeypatch.setattr(side_index, "LARGE", 1 if large else 1_000)
    body = {"sorts": [{"field": "price"}]}
    answer = await client.post(f"/v1/databases/{bills}/records/query", json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "unsupported")
    assert "took too long" in answer.json()["message"]
    async with space.database.transaction() as work:
        asked = select(func.count()).where(
            job.c.workspace_id == space.id, job.c.workflow_kind == WorkflowKind.FIELD_INDEX.value
        )
        assert await work.scalar(asked) == int(large)


NAME, DECOMPOSED, MIXED = "Zo\u00eb Ng\u1ecdc", "Zoe\u0308 Ngo\u0323c", "Zo\u00eb Ngo\u0323c"


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_a_text_is_found_in_any_normal_form(
    client: Client, space: Space, is_indexed: bool
) -> None:
    database_id = await make_database(client, space, "People", {"label": "Name", "kind": "text"})
    for title in (NAME, DECOMPOSED):
        await add(client, database_id, title, data={"name": title})
    if is_indexed:
        await index(space, UUID(database_id), "name")
        await index(space, UUID(database_id), "title")
    for given in (NAME, DECOMPOSED, MIXED):
        for field in ("title", "name"):
            for op, value in (
                ("eq", given),
                ("in", ["other", given]),
                ("contains", given[1:-1]),
                ("starts_with", given[:-1]),
                ("ends_with", given[1:]),
            ):
                narrowed = {"filter": {"field": field, "op": op, "value": value}}
                assert len(await titles(client, database_id, **narrowed)) == 2, (op, value)
            unequal = {"filter": {"field": field, "op": "ne", "value": given}}
            assert await titles(client, database_id, **unequal) == []
        assert len(await titles(client, database_id, search=given.upper())) == 2
    for other in ("Zoe Ngoc", "Zoe"):
        narrowed = {"filter": {"field": "name", "op": "eq", "value": other}}
        assert await titles(client, database_id, **narrowed) == []

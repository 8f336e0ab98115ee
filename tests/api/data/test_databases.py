"""Databases over HTTP: create, get, list, and everything that must be refused."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from models.content.items.joins import item
from models.core.access.rules import Role, Scope
from models.data.fields.tables import database as database_table
from tests.support.client import Client
from tests.support.spaces import Space

LAYOUT = {
    "version": 1,
    "pageWidth": "standard",
    "propertyColumns": 1,
    "propertyDensity": "comfortable",
    "propertyOrder": [],
    "hiddenFieldKeys": [],
    "sections": [],
    "contentPosition": "below",
    "showComments": True,
    "showActivity": True,
    "pinnedFieldKeys": [],
    "autoAddNewFields": True,
    "collapsedSectionIds": [],
    "relationViews": {},
    "showReferences": True,
}


async def create(client: Client, space: Space, **body: Any) -> Any:
    answer = await client.post(f"{space.path}/databases", json={"label": "Things", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def counts(space: Space) -> tuple[int, int]:
    async with space.database.transaction() as work:
        databases = select(func.count()).where(database_table.c.workspace_id == space.id)
        items = select(func.count()).where(item.c.workspace_id == space.id)
        return await work.scalar(databases), await work.scalar(items)


async def test_a_database_has_the_shape_of_the_interface(client: Client, space: Space) -> None:
    made = await create(
        client,
        space,
        label="Tasks & Bugs",
        description="What to do",
        icon="🐛",
        order=2.5,
        settings={"color": "red", "deep": {"a": [1]}},
        fields=[
            {
                "label": "State",
                "kind": "select",
                "required": True,
                "defaultValue": "open",
                "options": [{"name": "Open", "color": "green"}, {"name": "Done!"}],
                "settings": {"allowCreate": True},
            },
            {"label": "Price", "kind": "number", "settings": {"precision": 2}},
        ],
    )
    assert made.keys() == {
        "id", "workspaceId", "itemId", "key", "label", "description", "icon", "order",
        "settings", "recordLayout", "archived", "fields", "views", "createdAt",
        "updatedAt",
    }  # fmt: skip
    assert made["key"] == "tasks_bugs"
    assert made["recordLayout"] == LAYOUT
    assert [view["label"] for view in made["views"]] == ["All records"]
    assert (made["archived"], made["order"]) == (False, 2.5)
    assert made["settings"] == {"color": "red", "deep": {"a": [1]}}
    assert [field["key"] for field in made["fields"]] == ["title", "state", "price"]
    title, state, _ = made["fields"]
    assert (title["label"], title["kind"], title["order"]) == ("Title", "text", 0)
    assert state.keys() == {
        "id", "workspaceId", "databaseId", "key", "label", "kind", "required", "defaultValue",
        "options", "settings", "order", "createdAt", "updatedAt",
    }  # fmt: skip
    assert [
        (option["key"], option["name"], option["color"], option["order"])
        for option in state["options"]
    ] == [("open", "Open", "green", 0), ("done", "Done!", "gray", 1)]
    read = await client.get(f"{space.path}/databases/{made['id']}")
    assert read.json()["data"] == made


async def test_keys_are_unique_in_the_workspace(
    client: Client, space: Space, foreign: Space
) -> None:
    keys = [(await create(client, space, label="A b"))["key"] for _ in range(3)]
    assert keys == ["a_b", "a_b_2", "a_b_3"]
    assert (await create(client, space, label="A b", key="mine"))["key"] == "mine"
    taken = await client.post(f"{space.path}/databases", json={"label": "x", "key": "mine"})
    assert (taken.status_code, taken.json()["error"]) == (409, "conflict")
    other = client.with_token(foreign.token)
    assert (await create(other, foreign, label="A b"))["key"] == "a_b"


async def test_a_database_is_placed_below_its_parent(client: Client, space: Space) -> None:
    first = await create(client, space)
    second = await create(client, space, parentItemId=first["itemId"])
    third = await create(client, space, parentItemId=first["itemId"])
    assert (first.get("parentItemId"), second.get("parentItemId")) == (None, first["itemId"])
    assert (second["order"], third["order"]) == (0, 1)


async def test_the_list_is_paged_newest_first(client: Client, space: Space) -> None:
    made = [(await create(client, space))["id"] for _ in range(5)]
    found: list[str] = []
    cursor = None
    while True:
        query = {"limit": "2"} | ({} if cursor is None else {"cursor": cursor})
        answer = await client.get(f"{space.path}/databases", params=query)
        data = answer.json()["data"]
        found += [one["id"] for one in data["databases"]]
        assert all(one["fields"] for one in data["databases"])
        cursor = data["cursor"]
        if cursor is None:
            break
    assert found == made[::-1]


async def test_a_restricted_or_trashed_database_is_not_visible(
    client: Client, space: Space
) -> None:
    parent = await create(client, space, label="Parent")
    child = await create(client, space, label="Child", parentItemId=parent["itemId"])
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    for owner_sees in (200, 404):
        if owner_sees == 200:
            async with space.database.transaction() as work:
                this = update(item).where(item.c.target_id == parent["id"])
                await work.execute(this.values(access_mode="restricted"))
        else:
            assert (await client.delete(f"/v1/items/{parent['itemId']}")).status_code == 200
        path = f"{space.path}/databases/{child['id']}"
        assert (await client.get(path)).status_code == owner_sees
        listed = await client.get(f"{space.path}/databases")
        assert len(listed.json()["data"]["databases"]) == (2 if owner_sees == 200 else 0)
        hidden = await editor.get(path)
        unknown = await editor.get(f"{space.path}/databases/{uuid4()}")
        assert (hidden.status_code, hidden.content) == (404, unknown.content)
        listed = await editor.get(f"{space.path}/databases")
        assert listed.json()["data"]["databases"] == []
        below = {"label": "x", "parentItemId": child["itemId"]}
        assert (await editor.post(f"{space.path}/databases", json=below)).status_code == 404


async def test_a_guest_sees_nothing(client: Client, space: Space) -> None:
    await create(client, space)
    _, token = await space.member(Role.GUEST)
    listed = await client.with_token(token).get(f"{space.path}/databases")
    assert listed.json()["data"]["databases"] == []


@pytest.mark.parametrize("role", [Role.VIEWER, Role.COMMENTER])
async def test_readers_read_and_cannot_create(client: Client, space: Space, role: Role) -> None:
    made = await create(client, space)
    _, token = await space.member(role)
    reader = client.with_token(token)
    assert (await reader.get(f"{space.path}/databases/{made['id']}")).status_code == 200
    refused = await reader.post(f"{space.path}/databases", json={"label": "x"})
    assert (refused.status_code, refused.json()["error"]) == (403, "denied")


async def test_databases_need_their_scopes(client: Client, space: Space) -> None:
    token = await space.key([scope for scope in Scope if not scope.startswith("databases:")])
    bare = client.with_token(token)
    assert (await bare.get(f"{space.path}/databases")).status_code == 403
    assert (await bare.post(f"{space.path}/databases", json={"label": "x"})).status_code == 403


async def test_foreign_ids_answer_as_unknown_ones(
    client: Client, space: Space, foreign: Space
) -> None:
    theirs = await create(client.with_token(foreign.token), foreign)
    before = await counts(space)
    for use in (
        lambda id_: client.get(f"{space.path}/databases/{id_}"),
        lambda id_: client.get(f"/v1/workspaces/{id_}/databases"),
    ):
        real = await use(theirs["id"])
        random = await use(uuid4())
        assert (real.status_code, real.content) == (404, random.content)
    answers = [
        await client.post(
            f"{space.path}/databases", json={"label": "x", "parentItemId": str(id_), "key": "Bad"}
        )
        for id_ in (theirs["itemId"], uuid4())
    ]
    assert answers[0].content == answers[1].content
    answers = [
        await client.post(f"{space.path}/databases", json={"label": "x", "parentItemId": str(id_)})
        for id_ in (theirs["itemId"], uuid4())
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert await counts(space) == before


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "label"),
    ({"label": ""}, "label"),
    ({"label": "x" * 201}, "label"),
    ({"label": 5}, "label"),
    ({"label": "x", "id": "1"}, "id"),
    ({"label": "x", "workspaceId": str(uuid4())}, "workspaceId"),
    ({"label": "x", "key": "Upper"}, "key"),
    ({"label": "x", "key": "a\n"}, "key"),
    ({"label": "x", "order": "1"}, "order"),
    ({"label": "x", "order": True}, "order"),
    ({"label": "x", "parentItemId": "nothing"}, "parentItemId"),
    ({"label": "x", "settings": []}, "settings"),
    ({"label": "x", "fields": {}}, "fields"),
    ({"label": "x", "fields": [{"label": "F"}]}, "fields.0.kind"),
    ({"label": "x", "fields": [{"label": "F", "kind": "texts"}]}, "fields.0.kind"),
    (
        {"label": "x", "fields": [{"label": "F", "kind": "text", "required": 1}]},
        "fields.0.required",
    ),
    (
        {"label": "x", "fields": [{"label": "F", "kind": "text", "order": 10**400}]},
        "fields.0.order",
    ),
    ({"label": "x", "fields": [{"label": "F", "kind": "text", "id": "1"}]}, "fields.0.id"),
    (
        {"label": "x", "fields": [{"label": "F", "kind": "date", "defaultValue": "now"}]},
        "fields.0.defaultValue",
    ),
    ({"label": "x", "fields": [{"label": "F", "kind": "text"}] * 500}, "fields"),
    ({"label": "x", "fields": [{"label": "F", "kind": "text"}] * 501}, "fields"),
]


@pytest.mark.parametrize(("body", "path"), BAD)
async def test_bad_bodies_are_refused_where_they_are_wrong(
    client: Client, space: Space, body: dict[str, Any], path: str
) -> None:
    answer = await client.post(f"{space.path}/databases", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path
    assert await counts(space) == (0, 0)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"label": "a\\u0000b"}',
        b'{"label": "a\\ud800b"}',
        b'{"label": "x", "settings": {"a": "\\u0000"}}',
        b'{"label": "x", "settings": {"a": NaN}}',
        b'{"label": "x", "label": "y"}',
        b"[]",
        b"",
    ],
)
async def test_bodies_that_are_no_plain_json_are_refused(
    client: Client, space: Space, raw: bytes
) -> None:
    answer = await client.post(
        f"{space.path}/databases", content=raw, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert await counts(space) == (0, 0)


async def test_the_same_idempotency_key_creates_once(client: Client, space: Space) -> None:
    headers = {"Idempotency-Key": uuid4().hex}
    answers = [
        await client.post(f"{space.path}/databases", json={"label": "Once"}, headers=headers)
        for _ in range(2)
    ]
    assert answers[0].content == answers[1].content
    assert await counts(space) == (1, 1)

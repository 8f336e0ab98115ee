"""Search over HTTP: who finds what, and what a search text means."""

from typing import Any

import pytest

from models.core.access.rules import Role, Scope
from tests.support.client import Client
from tests.support.items import Json, make, make_item, read, refused
from tests.support.spaces import Space


async def search(client: Client, space: Space, q: str, **query: str) -> list[Json]:
    answer = await client.get(f"{space.path}/search", params={"q": q, **query})
    results: list[Json] = read(answer)["results"]
    return results


async def record(client: Client, database: Json, title: str) -> Json:
    path = f"/v1/databases/{database['target']['id']}/records"
    made: Json = read(await client.post(path, json={"title": title}), 201)
    return made


async def test_items_and_records_are_found(client: Client, space: Space) -> None:
    folder = await make_item(client, "The BLUE folder", icon="📁")
    database = await make(client, "database", "Blueprints")
    row = await record(client, database, "sky is blue")
    await record(client, database, "red")
    found = await search(client, space, "blue")
    assert [hit["id"] for hit in found] == [row["id"], database["item"]["id"], folder["id"]]
    assert found[0] == {
        "kind": "record",
        "id": row["id"],
        "title": "sky is blue",
        "itemId": database["item"]["id"],
        "itemKind": "database",
        "itemTitle": "Blueprints",
        "databaseId": database["target"]["id"],
        "updatedAt": row["updatedAt"],
    }
    assert found[1]["databaseId"] == database["target"]["id"]
    assert found[2] == {
        "kind": "item",
        "id": folder["id"],
        "title": "The BLUE folder",
        "itemId": folder["id"],
        "itemKind": "folder",
        "itemTitle": "The BLUE folder",
        "icon": "📁",
        "updatedAt": folder["updatedAt"],
    }


async def test_hits_of_one_kind_have_pages_of_their_own(client: Client, space: Space) -> None:
    database = await make(client, "database", "Blueprints")
    rows = [await record(client, database, f"blue {n}") for n in range(3)]
    (item,) = await search(client, space, "blue", kind="item", limit="1")
    assert item["id"] == database["item"]["id"]
    path, params = f"{space.path}/search", {"q": "blue", "kind": "record", "limit": "2"}
    first = read(await client.get(path, params=params))
    rest = read(await client.get(path, params={**params, "cursor": first["cursor"]}))
    assert [hit["id"] for page in (first, rest) for hit in page["results"]] == [
        row["id"] for row in reversed(rows)
    ]
    assert rest["cursor"] is None
    other = await client.get(path, params={**params, "kind": "item", "cursor": first["cursor"]})
    assert other.status_code == 400


@pytest.mark.parametrize("letter", ["%", "_", "/", "\\", "'", '"'])
async def test_every_letter_is_itself(client: Client, space: Space, letter: str) -> None:
    await make_item(client, "plain")
    meant = await make_item(client, f"a{letter}b")
    assert [hit["id"] for hit in await search(client, space, letter)] == [meant["id"]]


async def test_the_pages_of_a_search_lose_nothing(client: Client, space: Space) -> None:
    database = await make(client, "database", "x")
    made = [database["item"]["id"]]
    for number in range(4):
        made.append((await record(client, database, f"x {number}"))["id"])
        made.append((await make_item(client, f"x {number}"))["id"])
    found: list[str] = []
    cursor: str | None = None
    while True:
        query = {"q": "x", "limit": "2"} | ({} if cursor is None else {"cursor": cursor})
        data = read(await client.get(f"{space.path}/search", params=query))
        found += [hit["id"] for hit in data["results"]]
        cursor = data["cursor"]
        if cursor is None:
            break
    assert found == made[::-1]
    page = read(await client.get(f"{space.path}/search", params={"q": "x", "limit": "2"}))
    other = {"q": "y", "cursor": page["cursor"]}
    answer = await client.get(f"{space.path}/search", params=other)
    assert refused(answer) == (400, "validation_error")


async def test_an_item_without_access_is_not_found(
    client: Client, space: Space, foreign: Space
) -> None:
    await make_item(client.with_token(foreign.token), "secret")
    private = await make(client, "database", "secret", accessMode="restricted")
    await record(client, private, "secret")
    below = await make_item(client, "secret", private["item"])
    _, token = await space.member(Role.EDITOR)
    assert len(await search(client, space, "secret")) == 3
    assert await search(client.with_token(token), space, "secret") == []
    read(await client.post(f"/v1/items/{below['id']}/archive"))
    assert len(await search(client, space, "secret")) == 2
    read(await client.delete(f"/v1/items/{private['item']['id']}"))
    assert await search(client, space, "secret") == []


async def test_records_need_their_scope(client: Client, space: Space) -> None:
    database = await make(client, "database", "word")
    await record(client, database, "word")
    bare = client.with_token(await space.key([Scope.RESOURCES_READ]))
    assert [hit["kind"] for hit in await search(bare, space, "word")] == ["item"]
    other = client.with_token(await space.key([Scope.RECORDS_READ]))
    answer = await other.get(f"{space.path}/search", params={"q": "word"})
    assert refused(answer) == (403, "denied")


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({}, "q"),
        ({"q": ""}, "q"),
        ({"q": "x" * 201}, "q"),
        ({"q": "a\x00"}, "q"),
        ({"q": "a", "limit": "x"}, "limit"),
        ({"q": "a", "kind": "run"}, "kind"),
        ({"q": "a", "kinds": "item"}, "kinds"),
    ],
)
async def test_bad_searches_are_refused(
    client: Client, space: Space, query: dict[str, Any], path: str
) -> None:
    answer = await client.get(f"{space.path}/search", params=query)
    assert refused(answer) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path

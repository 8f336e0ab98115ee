"""Items over HTTP, as tests of the API make them."""

from typing import Any

import httpx2

from tests.support.client import Client

Json = dict[str, Any]


def read(answer: httpx2.Response, status: int = 200) -> Any:
    """The data of a success."""
    assert answer.status_code == status, answer.text
    return answer.json()["data"]


def refused(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["error"]


async def make(client: Client, kind: str = "folder", title: str = "Thing", **body: Any) -> Json:
    """A new item and its target."""
    return read(await client.post("/v1/items", json={"kind": kind, "title": title, **body}), 201)


async def make_item(
    client: Client, title: str = "Thing", parent: Json | None = None, **body: Any
) -> Json:
    """A new folder unless the body says otherwise; only the item."""
    if parent is not None:
        body["parentItemId"] = parent["id"]
    item: Json = (await make(client, body.pop("kind", "folder"), title, **body))["item"]
    return item


async def children(client: Client, parent: Json | str = "root", **query: str) -> list[Json]:
    """The children of an item, in their order."""
    parent_id = parent if isinstance(parent, str) else parent["id"]
    answer = await client.get("/v1/items", params={"parentId": parent_id, "limit": "100", **query})
    items: list[Json] = read(answer)["items"]
    return items


async def titles(client: Client, parent: Json | str = "root", **query: str) -> list[str]:
    """The titles of the children of an item, in their order."""
    return [item["title"] for item in await children(client, parent, **query)]

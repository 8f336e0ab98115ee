"""A PATCH may repeat what cannot be changed, as a client does that sends back what it read."""

from typing import Any

import pytest

from cli.supervisor.development import DevelopmentIssuer
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def _item(client: Client) -> Json:
    made = await client.post("/v1/items", json={"kind": "folder", "title": "Plans"})
    shown: Json = made.json()["data"]["item"]
    return shown


async def test_a_read_only_key_repeated_unchanged_is_accepted(client: Client) -> None:
    item = await _item(client)
    path = f"/v1/items/{item['id']}"
    echo = {"id": item["id"].upper(), "kind": "folder"}
    answer = await client.patch(path, json={**echo, "title": "Drafts"})
    assert (answer.status_code, answer.json()["data"]["title"]) == (200, "Drafts")
    assert (
        await client.patch(path.upper().replace("/V1/ITEMS", "/v1/items"), json=echo)
    ).is_success


@pytest.mark.parametrize(
    ("echo", "key"),
    [
        ({"kind": "page"}, "kind"),
        ({"kind": None}, "kind"),
        ({"id": "01a20611-6f5c-76d2-9361-00cccdb4d4c5"}, "id"),
        ({"id": 7}, "id"),
        ({"workspaceId": "x"}, "workspaceId"),
    ],
)
async def test_anything_else_in_its_place_changes_nothing(
    client: Client, echo: Json, key: str
) -> None:
    item = await _item(client)
    answer = await client.patch(f"/v1/items/{item['id']}", json={"title": "Drafts", **echo})
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == key
    assert (await client.get(f"/v1/items/{item['id']}")).json()["data"]["title"] == "Plans"


async def test_a_workspace_may_repeat_its_id(
    client: Client, space: Space, issuer: DevelopmentIssuer
) -> None:
    session = client.with_token(issuer.mint(space.email, "Test"))
    answer = await session.patch(space.path, json={"id": str(space.id), "name": "New"})
    assert answer.json()["data"]["workspace"]["name"] == "New"
    refused = await session.patch(space.path, json={"kind": "workspace"})
    assert refused.status_code == 400

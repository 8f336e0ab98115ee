"""Who may do what with an item: modes, grants and what is inherited (interface.md#item-levels)."""

import uuid
from dataclasses import dataclass

import pytest
import pytest_asyncio

from models.content.items.commands import create_item_for
from models.content.items.rules import ItemKind
from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.spaces import Space


@dataclass(frozen=True, slots=True)
class Branch:
    """A folder with a folder in it, and a database in that."""

    top: str
    middle: str
    database: str
    leaf: str


@pytest_asyncio.fixture
async def branch(client: Client, space: Space) -> Branch:
    async with space.database.transaction() as work:
        top = await create_item_for(work, space.actor, ItemKind.FOLDER, None, "Top")
        middle = await create_item_for(
            work, space.actor, ItemKind.FOLDER, None, "Middle", parent_item_id=top
        )
    body = {"label": "Goods", "parentItemId": str(middle)}
    made = (await client.post(f"{space.path}/databases", json=body)).json()["data"]
    return Branch(str(top), str(middle), made["id"], made["itemId"])


async def put(
    client: Client, item_id: str, mode: str, grants: dict[uuid.UUID, str] | None = None
) -> None:
    listed = [{"userId": str(user), "level": level} for user, level in (grants or {}).items()]
    body = {"accessMode": mode, "grants": listed}
    answer = await client.put(f"/v1/items/{item_id}/access", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["accessMode"] == mode


async def reading(client: Client, space: Space, branch: Branch) -> int:
    return (await client.get(f"{space.path}/databases/{branch.database}")).status_code


async def writing(client: Client, branch: Branch) -> int:
    path = f"/v1/databases/{branch.database}/records"
    return (await client.post(path, json={"title": "x"})).status_code


async def listed(client: Client, space: Space) -> int:
    return len((await client.get(f"{space.path}/databases")).json()["data"]["databases"])


async def test_a_restricted_item_closes_what_is_below(
    client: Client, space: Space, branch: Branch
) -> None:
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    assert (await reading(editor, space, branch), await listed(editor, space)) == (200, 1)
    await put(client, branch.top, "restricted")
    assert (await reading(editor, space, branch), await listed(editor, space)) == (404, 0)
    assert (await reading(client, space, branch), await listed(client, space)) == (200, 1)


@pytest.mark.parametrize("where", ["top", "middle", "leaf"])
@pytest.mark.parametrize(
    ("level", "read", "write"), [("view", 200, 403), ("comment", 200, 403), ("edit", 200, 201)]
)
async def test_a_grant_opens_it_at_its_level(
    client: Client, space: Space, branch: Branch, where: str, level: str, read: int, write: int
) -> None:
    user_id, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    await put(client, branch.top, "restricted")
    mode = "restricted" if where == "top" else "open"
    await put(client, getattr(branch, where), mode, {user_id: level})
    assert await reading(editor, space, branch) == read
    assert await writing(editor, branch) == write
    assert await listed(editor, space) == 1


async def test_the_nearest_restriction_bounds_the_grants(
    client: Client, space: Space, branch: Branch
) -> None:
    user_id, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    await put(client, branch.top, "restricted", {user_id: "manage"})
    await put(client, branch.middle, "restricted")
    assert (await reading(editor, space, branch), await listed(editor, space)) == (404, 0)
    await put(client, branch.middle, "restricted", {user_id: "view"})
    assert (await reading(editor, space, branch), await writing(editor, branch)) == (200, 403)


async def test_a_grant_never_takes_away_what_the_role_gives(
    client: Client, space: Space, branch: Branch
) -> None:
    user_id, token = await space.member(Role.EDITOR)
    await put(client, branch.leaf, "open", {user_id: "view"})
    assert await writing(client.with_token(token), branch) == 201


async def test_a_guest_has_what_was_granted_and_nothing_else(
    client: Client, space: Space, branch: Branch
) -> None:
    user_id, token = await space.member(Role.GUEST)
    guest = client.with_token(token)
    other = (await client.post(f"{space.path}/databases", json={"label": "Else"})).json()["data"]
    assert (await reading(guest, space, branch), await listed(guest, space)) == (404, 0)
    await put(client, branch.middle, "open", {user_id: "edit"})
    assert (await reading(guest, space, branch), await writing(guest, branch)) == (200, 201)
    assert await listed(guest, space) == 1
    unseen = await guest.get(f"{space.path}/databases/{other['id']}")
    assert unseen.status_code == 404
    assert (await guest.get(f"{space.path}/members")).status_code == 403
    await put(client, branch.middle, "open")
    assert (await reading(guest, space, branch), await listed(guest, space)) == (404, 0)


async def test_grants_go_with_the_membership(client: Client, space: Space, branch: Branch) -> None:
    user_id, _ = await space.member(Role.GUEST)
    await put(client, branch.leaf, "restricted", {user_id: "view"})
    await client.delete(f"{space.path}/members/{user_id}")
    access = (await client.get(f"/v1/items/{branch.leaf}/access")).json()["data"]
    assert access["grants"] == []


async def test_only_those_who_manage_decide(client: Client, space: Space, branch: Branch) -> None:
    user_id, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    path = f"/v1/items/{branch.top}/access"
    body = {"accessMode": "open", "grants": []}
    assert (await editor.put(path, json=body)).status_code == 403
    assert (await editor.get(path)).status_code == 403
    await put(client, branch.top, "open", {user_id: "manage"})
    assert (await editor.put(path, json=body)).status_code == 200


async def test_a_grant_is_for_a_member_once(
    client: Client, space: Space, foreign: Space, branch: Branch
) -> None:
    path = f"/v1/items/{branch.top}/access"
    user_id, _ = await space.member(Role.VIEWER)

    def body(*users: object) -> dict[str, object]:
        grants = [{"userId": str(user), "level": "view"} for user in users]
        return {"accessMode": "restricted", "grants": grants}

    there = await client.put(path, json=body(foreign.user_id))
    nowhere = await client.put(path, json=body(uuid.uuid4()))
    assert there.status_code == nowhere.status_code == 404
    assert there.content == nowhere.content
    twice = await client.put(path, json=body(user_id, user_id))
    assert twice.status_code == 400
    assert twice.json()["details"][0]["path"] == "grants.1.userId"
    unknown = {"accessMode": "restricted", "grants": [{"userId": str(user_id), "level": "own"}]}
    assert (await client.put(path, json=unknown)).status_code == 400
    access = (await client.get(path)).json()["data"]
    assert (access["accessMode"], access["grants"]) == ("open", [])

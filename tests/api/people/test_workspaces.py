"""Workspaces and the caller."""

import asyncio

import pytest

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Role, Scope
from models.people.workspaces import ensure_first_workspace
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.watched import WatchedDatabase


@pytest.fixture
def owner(client: Client, space: Space, issuer: DevelopmentIssuer) -> Client:
    """The owner of `space` in a session."""
    return client.with_token(issuer.mint(space.email, "Test"))


async def test_a_created_workspace_is_its_makers(owner: Client, client: Client) -> None:
    answer = await owner.post("/v1/workspaces", json={"name": "Ünïted Teams", "icon": "🚀"})
    assert answer.status_code == 201
    entry = answer.json()["data"]
    assert entry["role"] == "owner"
    assert entry["permissions"] == list(Scope)
    assert entry["workspace"]["slug"].startswith("united-teams")
    path = f"/v1/workspaces/{entry['workspace']['id']}"
    assert (await owner.get(path)).json()["data"] == entry
    assert (await client.get(path)).status_code == 404


async def test_workspaces_are_listed_under_both_paths(
    owner: Client, client: Client, space: Space
) -> None:
    await owner.post("/v1/workspaces", json={"name": "Second"})
    both = await owner.get("/v1/workspaces")
    assert [entry["workspace"]["name"] for entry in both.json()["data"]["workspaces"]] == [
        "Test",
        "Second",
    ]
    assert (await owner.get("/v1/me/workspaces")).content == both.content
    own = (await client.get("/v1/workspaces")).json()["data"]["workspaces"]
    assert [entry["workspace"]["id"] for entry in own] == [str(space.id)]


async def test_permissions_are_those_of_key_and_role(client: Client, space: Space) -> None:
    key = client.with_token(await space.key([Scope.RECORDS_READ, Scope.WORKSPACE_READ]))
    assert (await key.get("/v1/workspaces")).json()["data"]["workspaces"][0]["permissions"] == [
        "workspace:read",
        "records:read",
    ]
    scopes = (await key.get("/v1/me/scopes")).json()["data"]
    assert scopes["principalType"] == "api_key"
    assert scopes["workspaces"][0]["scopes"] == ["workspace:read", "records:read"]
    _, commenter = await space.member(Role.COMMENTER)
    mine = (await client.with_token(commenter).get("/v1/me/scopes")).json()["data"]
    assert "records:comment" in mine["workspaces"][0]["scopes"]


async def test_slugs_are_unique(owner: Client) -> None:
    asked = {"name": "A", "slug": "wanted-slug"}
    assert (await owner.post("/v1/workspaces", json=asked)).status_code == 201
    taken = await owner.post("/v1/workspaces", json=asked)
    assert taken.status_code == 409
    assert "wanted-slug" in taken.json()["message"]
    made = await asyncio.gather(
        *(owner.post("/v1/workspaces", json={"name": "Crowd"}) for _ in range(12))
    )
    slugs = {answer.json()["data"]["workspace"]["slug"] for answer in made}
    assert len(slugs) == 12


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "x", "slug": "Not A Slug"}, "slug"),
        ({"name": "x", "slug": "a\n"}, "slug"),
        ({"name": "x", "slug": "-a"}, "slug"),
        ({"name": "x", "id": "y"}, "id"),
        ({"name": "x", "role": "owner"}, "role"),
        ({"name": 5}, "name"),
    ],
)
async def test_bad_bodies_of_workspaces_are_refused(
    owner: Client, body: dict[str, object], path: str
) -> None:
    answer = await owner.post("/v1/workspaces", json=body)
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == path


async def test_the_answer_names_the_caller(owner: Client, client: Client, space: Space) -> None:
    me = (await owner.get("/v1/me")).json()["data"]
    assert me["user"]["email"] == space.email
    assert (me["principalType"], "workspaceId" in me) == ("session", False)
    me = (await client.get("/v1/me")).json()["data"]
    assert (me["principalType"], me["workspaceId"]) == ("api_key", str(space.id))


async def test_the_first_workspace_is_made_once(
    client: Client, database: WatchedDatabase, issuer: DevelopmentIssuer
) -> None:
    ids = []
    for _ in range(2):
        async with database.transaction() as work:
            ids.append(await ensure_first_workspace(work, "First@Example.test", "First"))
    assert ids[0] == ids[1]
    session = client.with_token(issuer.mint("First@Example.test", "First"))
    listed = (await session.get("/v1/workspaces")).json()["data"]["workspaces"]
    assert [entry["workspace"]["id"] for entry in listed] == [str(ids[0][0])]
    assert (await session.get("/v1/me")).json()["data"]["platformAdmin"] is True


async def test_a_workspace_is_renamed(client: Client, owner: Client, space: Space) -> None:
    changed = await client.patch(space.path, json={"name": "Renamed", "icon": "🌍"})
    shown = changed.json()["data"]["workspace"]
    assert (shown["name"], shown["icon"]) == ("Renamed", "🌍")
    cleared = (await client.patch(space.path, json={"icon": None})).json()["data"]["workspace"]
    assert (cleared["name"], "icon" in cleared) == ("Renamed", False)
    other = await owner.post("/v1/workspaces", json={"name": "Other"})
    slug = other.json()["data"]["workspace"]["slug"]
    assert (await client.patch(space.path, json={"slug": slug})).status_code == 409
    assert (await client.get(space.path)).json()["data"]["workspace"] == cleared


async def test_a_deleted_workspace_is_gone_with_its_keys(
    client: Client, owner: Client, space: Space
) -> None:
    _, token = await space.member(Role.ADMIN)
    assert (await client.with_token(token).delete(space.path)).status_code == 403
    deleted = await owner.delete(space.path)
    assert deleted.json()["data"] == {"id": str(space.id)}
    assert (await owner.get(space.path)).status_code == 404
    assert (await client.get(space.path)).status_code == 401
    assert (await owner.get("/v1/workspaces")).json()["data"]["workspaces"] == []

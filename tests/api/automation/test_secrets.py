"""Secrets over HTTP: named, replaced and deleted, and never shown."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select, update

from models.automation.secrets import store
from models.automation.secrets.store import secret_values, workspace_secret
from models.core.access.rules import Role, Scope
from runtime.crypto import UnreadableError
from tests.support.automations import create, read, refusal
from tests.support.client import Client
from tests.support.spaces import MakeSpace, Space

CANARY = "canary-0c21"


async def stored(space: Space, name: str) -> str | None:
    """What a node that names the secret would send."""
    async with space.database.transaction() as work:
        return (await secret_values(work, space.keys, space.id, {name})).get(name)


async def test_a_value_goes_in_and_never_comes_out(client: Client, space: Space) -> None:
    path = f"{space.path}/secrets/API_KEY"
    answer = await client.put(path, json={"value": CANARY})
    made = read(answer)
    assert (made["name"], set(made)) == ("API_KEY", {"name", "createdAt", "updatedAt"})
    listed = await client.get(f"{space.path}/secrets")
    assert read(listed) == {"secrets": [made], "cursor": None}
    assert CANARY not in answer.text + listed.text
    assert (await client.get(path)).status_code == 405
    assert await stored(space, "API_KEY") == CANARY
    async with space.database.transaction() as work:
        row = await work.first(
            select(workspace_secret).where(workspace_secret.c.workspace_id == space.id)
        )
    assert row is not None
    assert CANARY.encode() not in row.sealed_value


async def test_a_secret_gets_another_value_and_goes(client: Client, space: Space) -> None:
    path = f"{space.path}/secrets/a"
    first = read(await client.put(path, json={"value": "one"}))
    second = read(await client.put(path, json={"value": "two"}))
    assert second["createdAt"] == first["createdAt"]
    assert second["updatedAt"] >= first["updatedAt"]
    assert await stored(space, "a") == "two"
    assert read(await client.delete(path)) == {"name": "a"}
    assert await stored(space, "a") is None
    assert refusal(await client.delete(path)) == (404, "not_found")


@pytest.mark.parametrize("name", ["_", "A", "a1", "x" * 63, "API_KEY"])
async def test_the_name_of_a_secret_is_an_identifier(
    client: Client, space: Space, name: str
) -> None:
    assert (await client.put(f"{space.path}/secrets/{name}", json={"value": "x"})).is_success


@pytest.mark.parametrize("name", ["1a", "a-b", "a.b", "x" * 64, "%C3%BC", "a%0A", "a%20b"])
async def test_an_invalid_secret_name_is_refused(client: Client, space: Space, name: str) -> None:
    path = f"{space.path}/secrets/{name}"
    assert refusal(await client.put(path, json={"value": "x"})) == (400, "validation_error")
    assert (await client.delete(path)).status_code == 404


@pytest.mark.parametrize(
    "body",
    [{}, {"value": ""}, {"value": None}, {"value": 1}, {"value": "x", "name": "y"}, []],
    ids=["nothing", "empty", "null", "number", "more", "list"],
)
async def test_the_value_of_a_secret_is_text(client: Client, space: Space, body: Any) -> None:
    answer = await client.put(f"{space.path}/secrets/a", json=body)
    assert refusal(answer) == (400, "validation_error")


async def test_the_value_of_a_secret_has_at_most_eight_kibibytes(
    client: Client, space: Space
) -> None:
    path = f"{space.path}/secrets/a"
    assert (await client.put(path, json={"value": "ü" * 4_096})).is_success
    for value in ("x" * 8_193, "ü" * 4_097):
        assert refusal(await client.put(path, json={"value": value})) == (400, "validation_error")


async def test_secrets_are_listed_by_name_in_pages(client: Client, space: Space) -> None:
    for name in ("c", "a", "b"):
        await client.put(f"{space.path}/secrets/{name}", json={"value": "x"})
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        query = f"limit=2&cursor={cursor}" if cursor else "limit=2"
        page = read(await client.get(f"{space.path}/secrets?{query}"))
        seen += [one["name"] for one in page["secrets"]]
        cursor = page["cursor"]
    assert seen == ["a", "b", "c"]


async def test_two_at_once_do_not_exceed_the_limit(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.SECRETS, "most", 3)
    paths = [f"{space.path}/secrets/s{number}" for number in range(12)]
    answers = await asyncio.gather(*(client.put(path, json={"value": "x"}) for path in paths))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [409] * 9
    known = next(path for path, got in zip(paths, answers, strict=True) if got.is_success)
    assert (await client.put(known, json={"value": "y"})).is_success


async def test_members_see_names_and_editors_change_them(client: Client, space: Space) -> None:
    path = f"{space.path}/secrets/a"
    _, viewer = await space.member(Role.VIEWER)
    _, editor = await space.member(Role.EDITOR)
    _, guest = await space.member(Role.GUEST)
    reader = await space.key([Scope.INTEGRATIONS_READ])
    assert (await client.with_token(editor).put(path, json={"value": "x"})).is_success
    for token in (viewer, reader):
        one = client.with_token(token)
        assert len(read(await one.get(f"{space.path}/secrets"))["secrets"]) == 1
        assert refusal(await one.put(path, json={"value": "y"})) == (403, "denied")
        assert refusal(await one.delete(path)) == (403, "denied")
    assert refusal(await client.with_token(guest).get(f"{space.path}/secrets")) == (403, "denied")


async def test_a_secret_is_its_own_workspace_s(
    client: Client, space: Space, workspace: MakeSpace
) -> None:
    other = await workspace()
    stranger = client.with_token(other.token)
    await client.put(f"{space.path}/secrets/a", json={"value": "mine"})
    assert read(await stranger.get(f"{other.path}/secrets"))["secrets"] == []
    assert refusal(await stranger.delete(f"{other.path}/secrets/a")) == (404, "not_found")
    assert refusal(await stranger.get(f"{space.path}/secrets")) == (404, "not_found")
    auth = {"type": "bearer", "token": {"type": "secret", "value": "a"}}
    call = {"id": "n", "kind": "http_request", "config": {"url": "https://x.test/", "auth": auth}}
    assert (await create(client, space, graph={"nodes": [call]}))["referenceIssues"] == []
    theirs = await create(stranger, other, graph={"nodes": [call]})
    (issue,) = theirs["referenceIssues"]
    assert issue["message"] == 'auth.token: Secret "a" not found.'


async def test_a_sealed_value_is_bound_to_its_place(client: Client, space: Space) -> None:
    for name in ("a", "b"):
        await client.put(f"{space.path}/secrets/{name}", json={"value": name})
    async with space.database.transaction() as work:
        mine = workspace_secret.c.workspace_id == space.id
        sealed = await work.scalar(
            select(workspace_secret.c.sealed_value).where(mine, workspace_secret.c.name == "a")
        )
        moved = update(workspace_secret).where(mine, workspace_secret.c.name == "b")
        await work.execute(moved.values(sealed_value=sealed))
    assert await stored(space, "a") == "a"
    with pytest.raises(UnreadableError):
        await stored(space, "b")


async def test_an_action_names_secrets_where_it_sends_them(client: Client, space: Space) -> None:
    value = {"type": "secret", "value": "a"}
    call = {"url": "https://x.test/", "headers": {"X-Key": value}}
    sent = {"label": "A", "kind": "http_request", "config": {"kind": "http_request", **call}}
    assert (await client.post(f"{space.path}/actions", json=sent)).status_code == 201
    step = {"id": "s", "kind": "http_request", "config": call}
    steps = {"label": "A", "kind": "sequence", "config": {"kind": "sequence", "steps": [step]}}
    assert (await client.post(f"{space.path}/actions", json=steps)).status_code == 201
    kept = {"kind": "transform", "config": {"kind": "transform", "output": {"x": value}}}
    answer = await client.post(f"{space.path}/actions", json={"label": "A", **kept})
    assert refusal(answer) == (400, "validation_error")

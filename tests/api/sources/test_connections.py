"""Connections over HTTP: made, listed, shared, changed, deleted; credentials never come out."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select, update

from models.core.access.rules import Role, Scope
from models.core.base import Id
from models.sources.connections.store import CONNECTIONS, connection, open_connection
from runtime.crypto import UnreadableError
from tests.support.automations import read, refusal
from tests.support.client import Client
from tests.support.spaces import MakeSpace, Space

CANARY = "canary-7b1e"
HTTP: dict[str, Any] = {
    "provider": "http",
    "label": "Prices",
    "config": {"baseUrl": "https://api.example.com/v2"},
    "credentials": {"secret": CANARY},
}
POSTGRESQL: dict[str, Any] = {
    "provider": "postgresql",
    "label": "Shop",
    "config": {"host": "db.example.com", "database": "shop", "user": "reader"},
    "credentials": {"password": CANARY},
}
SOMEWHERE = "00000000-0000-7000-8000-000000000000"


def connections(space: Space) -> str:
    return f"{space.path}/integrations/connections"


async def make(client: Client, space: Space, body: Any = HTTP, **changes: Any) -> Any:
    answer = await client.post(connections(space), json={**body, **changes})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def opened(space: Space, connection_id: str) -> Any:
    """What a worker signs in with."""
    async with space.database.transaction() as work:
        return await open_connection(work, space.keys, space.id, Id(connection_id))


async def test_providers_say_what_they_sign_in_with(client: Client, space: Space) -> None:
    listed = read(await client.get(f"{space.path}/integrations/providers"))["providers"]
    needed = {one["provider"]: one["credentials"] for one in listed}
    assert needed == {
        "demo": [],
        "http": ["secret"],
        "postgresql": ["password"],
        "mysql": ["password"],
        "sqlite": [],
        "webdav": ["secret"],
        "s3": ["accessKeyId", "secretAccessKey"],
        "sftp": ["secret"],
        "github": ["token"],
        "notion": ["token"],
        "airtable": ["token"],
        "google_drive": ["token"],
    }


async def test_credentials_go_in_and_never_come_out(client: Client, space: Space) -> None:
    made = await client.post(connections(space), json=POSTGRESQL)
    shown = made.json()["data"]
    assert shown["config"] == {**POSTGRESQL["config"], "port": 5432, "tls": "verified"}
    path = f"{connections(space)}/{shown['id']}"
    one, listed = await client.get(path), await client.get(connections(space))
    assert (read(one), read(listed)["connections"]) == (shown, [shown])
    changed = await client.patch(path, json={"label": "Store"})
    assert read(changed)["label"] == "Store"
    assert CANARY not in made.text + one.text + listed.text + changed.text
    assert (await opened(space, shown["id"])).credentials == {"password": CANARY}
    async with space.database.transaction() as work:
        row = await work.first(select(connection).where(connection.c.id == Id(shown["id"])))
    assert row is not None
    assert CANARY.encode() not in row.sealed_credentials


async def test_a_new_host_needs_the_credentials_again(client: Client, space: Space) -> None:
    made = await make(client, space, POSTGRESQL)
    path = f"{connections(space)}/{made['id']}"
    moved = {**POSTGRESQL["config"], "host": "elsewhere.example.com"}
    refused = await client.patch(path, json={"config": moved})
    assert refusal(refused) == (400, "validation_error")
    assert "credentials.password" in refused.text
    answer = await client.patch(path, json={"config": moved, "credentials": {"password": "new"}})
    assert read(answer)["config"]["host"] == "elsewhere.example.com"
    assert (await opened(space, made["id"])).credentials == {"password": "new"}


async def test_credentials_are_replaced_alone(client: Client, space: Space) -> None:
    made = await make(client, space)
    path = f"{connections(space)}/{made['id']}"
    assert (await client.patch(path, json={"credentials": {"secret": "new"}})).is_success
    assert (await opened(space, made["id"])).credentials == {"secret": "new"}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"provider": "oracle"}, "provider"),
        ({"config": {}}, "config.baseUrl"),
        ({"config": {"baseUrl": "ftp://example.com"}}, "config.baseUrl"),
        ({"config": {"baseUrl": "http://169.254.169.254/"}}, "config.baseUrl"),
        ({"config": {**HTTP["config"], "auth": "header"}}, "config"),
        ({"config": {**HTTP["config"], "auth": "basic"}}, "config"),
        ({"config": {**HTTP["config"], "extra": 1}}, "config.extra"),
        ({"credentials": {}}, "credentials.secret"),
        ({"credentials": {"secret": ""}}, "credentials.secret"),
        ({"credentials": {"secret": "x", "password": "y"}}, "credentials.password"),
        ({"config": {**HTTP["config"], "auth": "none"}}, "credentials.secret"),
        ({"credentials": {"secret": "x" * 8_193}}, "credentials.secret"),
        ({"label": ""}, "label"),
        ({**POSTGRESQL, "config": {**POSTGRESQL["config"], "host": "a b"}}, "config.host"),
        ({**POSTGRESQL, "config": {**POSTGRESQL["config"], "port": 0}}, "config.port"),
        ({**POSTGRESQL, "config": {**POSTGRESQL["config"], "host": "10.0.0.5"}}, "private"),
        ({**POSTGRESQL, "config": {**POSTGRESQL["config"], "host": "169.254.169.254"}}, "private"),
    ],
)
async def test_a_value_that_a_provider_does_not_take_is_refused_at_its_path(
    client: Client, space: Space, changes: Any, place: str
) -> None:
    answer = await client.post(connections(space), json={**HTTP, **changes})
    assert refusal(answer) == (400, "validation_error")
    assert place in answer.text
    assert CANARY not in answer.text


async def test_a_file_of_a_database_must_be_seen(client: Client, space: Space) -> None:
    sqlite = {"provider": "sqlite", "label": "File", "config": {"fileId": SOMEWHERE}}
    assert refusal(await client.post(connections(space), json=sqlite)) == (404, "not_found")


async def test_a_connection_is_its_maker_s_until_it_is_shared(client: Client, space: Space) -> None:
    made = await make(client, space)
    path = f"{connections(space)}/{made['id']}"
    _, token = await space.member(Role.EDITOR)
    colleague = client.with_token(token)
    assert read(await colleague.get(connections(space)))["connections"] == []
    for answer in (
        await colleague.get(path),
        await colleague.patch(path, json={"shared": True}),
        await colleague.delete(path),
        await colleague.post(f"{space.path}/data-sources", json=source(made["id"])),
    ):
        assert refusal(answer) == (404, "not_found")
    assert (await client.patch(path, json={"shared": True})).is_success
    assert read(await colleague.get(path))["shared"] is True
    used = await colleague.post(f"{space.path}/data-sources", json=source(made["id"]))
    assert used.status_code == 201, used.text


async def test_viewers_see_shared_connections_and_change_none(client: Client, space: Space) -> None:
    made = await make(client, space, shared=True)
    path = f"{connections(space)}/{made['id']}"
    _, viewer = await space.member(Role.VIEWER)
    _, guest = await space.member(Role.GUEST)
    reader = await space.key([Scope.INTEGRATIONS_READ])
    for token in (viewer, reader):
        one = client.with_token(token)
        assert (await one.get(path)).is_success
        assert refusal(await one.patch(path, json={"label": "x"})) == (403, "denied")
        assert refusal(await one.delete(path)) == (403, "denied")
    assert refusal(await client.with_token(guest).get(path)) == (403, "denied")


async def test_a_connection_is_its_own_workspace_s(
    client: Client, space: Space, workspace: MakeSpace
) -> None:
    made = await make(client, space, shared=True)
    other = await workspace()
    stranger = client.with_token(other.token)
    path = f"{connections(other)}/{made['id']}"
    assert refusal(await stranger.get(path)) == (404, "not_found")
    assert refusal(await stranger.delete(path)) == (404, "not_found")
    used = await stranger.post(f"{other.path}/data-sources", json=source(made["id"]))
    assert refusal(used) == (404, "not_found")


async def test_a_deleted_connection_is_gone_with_its_credentials(
    client: Client, space: Space
) -> None:
    made = await make(client, space)
    path = f"{connections(space)}/{made['id']}"
    assert read(await client.delete(path)) == {"id": made["id"]}
    assert refusal(await client.get(path)) == (404, "not_found")
    assert await opened(space, made["id"]) is None


async def test_two_at_once_do_not_exceed_the_limit(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CONNECTIONS.limit, "most", 3)
    path = connections(space)
    answers = await asyncio.gather(*(client.post(path, json=HTTP) for _ in range(9)))
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [409] * 6


async def test_sealed_credentials_are_bound_to_their_connection(
    client: Client, space: Space
) -> None:
    mine, moved = await make(client, space), await make(client, space)
    async with space.database.transaction() as work:
        sealed = await work.scalar(
            select(connection.c.sealed_credentials).where(connection.c.id == Id(mine["id"]))
        )
        statement = update(connection).where(connection.c.id == Id(moved["id"]))
        await work.execute(statement.values(sealed_credentials=sealed))
    with pytest.raises(UnreadableError):
        await opened(space, moved["id"])


def source(connection_id: str, **config: Any) -> Any:
    """A data source that signs in through a connection."""
    auth = {"type": "connection", "connectionId": connection_id}
    return {
        "label": "Prices",
        "kind": "http_json",
        "config": {"url": "https://api.example.com/v2/prices", "auth": auth, **config},
    }


@pytest.mark.parametrize(
    ("body", "config", "place"),
    [
        (POSTGRESQL, {}, "config.auth.connectionId"),
        (HTTP, {"url": "https://example.org/v2/prices"}, "config.url"),
        (HTTP, {"url": "http://api.example.com/v2/prices"}, "config.url"),
        (HTTP, {"url": "https://api.example.com:8443/v2/prices"}, "config.url"),
    ],
    ids=["a database", "host", "scheme", "port"],
)
async def test_a_source_reaches_what_its_connection_reaches(
    client: Client, space: Space, body: Any, config: Any, place: str
) -> None:
    made = await make(client, space, body)
    answer = await client.post(f"{space.path}/data-sources", json=source(made["id"], **config))
    assert refusal(answer) == (400, "validation_error")
    assert place in answer.text


@pytest.mark.parametrize("host", ["..", "a..b", ".a", "a" * 64, "1.2.3.4.5", "a:5432"])
@pytest.mark.parametrize("provider", ["postgresql", "mysql", "sftp"])
async def test_a_host_that_no_name_can_be_is_refused(
    client: Client, space: Space, provider: str, host: str
) -> None:
    own = {"username": "u", "hostKey": "ssh-ed25519 AAAA"}
    rest = own if provider == "sftp" else {"database": "d", "user": "u"}
    secret = {"secret": "x"} if provider == "sftp" else {"password": "x"}
    body = {
        "provider": provider,
        "label": "S",
        "config": {"host": host, **rest},
        "credentials": secret,
    }
    answer = await client.post(connections(space), json=body)
    assert refusal(answer) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == "config.host"


async def test_only_databases_answer_queries_and_only_providers_have_resources(
    client: Client, space: Space
) -> None:
    made = await make(client, space)
    query = {"connectionId": made["id"], "query": "SELECT 1"}
    answer = await client.post(
        f"{space.path}/data-sources", json={"label": "Q", "kind": "sql", "config": query}
    )
    assert refusal(answer) == (400, "validation_error")
    assert "HTTP does not support SQL queries." in answer.text

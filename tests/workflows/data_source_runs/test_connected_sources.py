"""Data sources that sign in through a connection."""

import base64
from typing import Any

import pytest

from tests.support.client import Client
from tests.support.endpoint import Serve
from tests.support.engine import Engine
from tests.support.sources import Source, goods, make_source
from tests.support.spaces import Space

SECRET = "canary-19c4"


async def connected(client: Client, space: Space, serve: Serve, config: Any) -> tuple[Source, str]:
    """A data source whose server is called through a connection, and the connection's path."""
    endpoint = await serve(goods(("a", "Apple", 1)))
    body = {
        "provider": "http",
        "label": "Goods",
        "config": {"baseUrl": endpoint.url, **config},
        "credentials": {"secret": SECRET},
    }
    path = f"{space.path}/integrations/connections"
    answer = await client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    connection_id = answer.json()["data"]["id"]
    auth = {"type": "connection", "connectionId": connection_id}
    source = await make_source(client, space, serve, config={"url": endpoint.url, "auth": auth})
    source.endpoint = endpoint
    return source, f"{path}/{connection_id}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("config", "header"),
    [
        ({}, ("authorization", f"Bearer {SECRET}")),
        (
            {"auth": "basic", "username": "ada"},
            ("authorization", f"Basic {base64.b64encode(f'ada:{SECRET}'.encode()).decode()}"),
        ),
        ({"auth": "header", "headerName": "X-Token"}, ("x-token", SECRET)),
    ],
    ids=["bearer", "basic", "header"],
)
async def test_a_refresh_signs_in(
    client: Client,
    space: Space,
    engine: Engine,
    serve: Serve,
    config: Any,
    header: tuple[str, str],
) -> None:
    assert engine.database is space.database
    source, path = await connected(client, space, serve, config)
    run = await source.refresh()
    assert run["status"] == "succeeded", run
    assert source.endpoint.requests[0].headers[header[0]] == header[1]
    assert set(await source.records()) == {"a"}

    preview = {
        "kind": "http_json",
        "config": (await client.get(source.path)).json()["data"]["config"],
    }
    shown = await client.post(f"{space.path}/data-sources/preview", json=preview)
    assert len(shown.json()["data"]["rows"]) == 1, shown.text
    assert source.endpoint.requests[-1].headers[header[0]] == header[1]

    assert (await client.delete(path)).is_success
    failed = await source.refresh()
    assert (failed["status"], failed["errorKind"]) == ("failed", "auth")
    assert failed["error"] == "The connection was deleted."
    assert set(await source.records()) == {"a"}


async def test_a_connection_that_was_moved_signs_in_nowhere_else(
    client: Client, space: Space, engine: Engine, serve: Serve
) -> None:
    assert engine.database is space.database
    source, path = await connected(client, space, serve, {})
    elsewhere = await serve(goods(("x", "Else", 1)))
    moved = {"config": {"baseUrl": elsewhere.url}, "credentials": {"secret": SECRET}}
    assert (await client.patch(path, json=moved)).is_success
    failed = await source.refresh()
    assert (failed["status"], failed["errorKind"]) == ("failed", "auth")
    assert failed["error"] == "The connection is for another origin than the URL."
    assert source.endpoint.requests == []
    assert elsewhere.requests == []

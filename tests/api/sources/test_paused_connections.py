"""The pause of a connection over the API: begun with a reason, ended at once or at a rate."""

from typing import Any

from models.core.access.rules import Role
from tests.support.automations import read
from tests.support.client import Client
from tests.support.spaces import Space

RUNNING = {"state": "running", "resting": 0}


async def connected(client: Client, space: Space, **fields: Any) -> str:
    """The path of a connection."""
    path = f"{space.path}/integrations/connections"
    body = {"provider": "demo", "label": "Prices", "shared": True, **fields}
    return f"{path}/{read(await client.post(path, json=body), 201)['id']}"


async def test_a_connection_is_paused_and_resumed_once(client: Client, space: Space) -> None:
    path = await connected(client, space)
    assert read(await client.get(f"{path}/pause")) == RUNNING
    first = read(await client.post(f"{path}/pause", json={"reason": "It is down."}))
    assert (first["state"], first["reason"], first["resting"]) == ("paused", "It is down.", 0)
    assert read(await client.post(f"{path}/pause", json={"reason": "Second."})) == first
    # No call waits, so that there is nothing to release.
    assert read(await client.post(f"{path}/resume", json={"rate": 60})) == RUNNING
    assert read(await client.post(f"{path}/resume", json={})) == RUNNING
    log = read(await client.get(f"{space.path}/events"))["events"]
    types = [one["type"] for one in log if one["type"].startswith("connection.")]
    assert types == ["connection.paused", "connection.resumed"]


async def test_rates_have_bounds(client: Client, space: Space) -> None:
    path = await connected(client, space)
    for rate in (0, -1, 6_001, 0.5, "much"):
        answer = await client.post(f"{path}/resume", json={"rate": rate})
        assert answer.status_code == 400, rate


async def test_a_limit_and_a_pause_of_a_connection_outlive_each_other(
    client: Client, space: Space
) -> None:
    path = await connected(client, space)
    limits = f"{space.path}/integrations/outbound-limits"
    body = {"connectionId": path.rpartition("/")[2], "perSecond": 5}
    paused = read(await client.post(f"{path}/pause", json={}))
    made = read(await client.post(limits, json=body), 201)
    read(await client.delete(f"{limits}/{made['id']}"))
    assert read(await client.get(limits))["limits"] == []
    assert read(await client.get(f"{path}/pause")) == paused
    made = read(await client.post(limits, json=body), 201)
    assert read(await client.post(f"{path}/resume", json={})) == RUNNING
    assert [one["id"] for one in read(await client.get(limits))["limits"]] == [made["id"]]


async def test_a_connection_of_another_member_is_not_there(client: Client, space: Space) -> None:
    path = await connected(client, space, shared=False)
    theirs = client.with_token((await space.member(Role.ADMIN))[1])
    assert (await theirs.get(f"{path}/pause")).status_code == 404
    for place in ("pause", "resume"):
        assert (await theirs.post(f"{path}/{place}", json={})).status_code == 404
    read(await client.post(f"{path}/pause", json={}))
    log = read(await theirs.get(f"{space.path}/events"))["events"]
    assert not [one for one in log if one["type"] == "connection.paused"]

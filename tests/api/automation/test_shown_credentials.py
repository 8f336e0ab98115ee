"""Credentials written into a request are shown to members who may change it, and to no one else."""

from typing import Any

import pytest

from models.automation.actions.store import ACTIONS
from models.automation.automations.import_export import VERSIONS
from models.core.access.rules import Role, Scope
from models.core.http_requests import HIDDEN
from tests.support.client import Client
from tests.support.items import Json, read, refused
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=4)

CANARY = "canary-77d1"
CALL = {
    "url": f"https://example.test/orders?api_key={CANARY}&limit=5",
    "headers": {"Authorization": f"Bearer {CANARY}", "Accept": "text/csv"},
    "auth": {"type": "basic", "username": "ada", "password": CANARY},
}
SHOWN = {
    "url": f"https://example.test/orders?api_key={HIDDEN}&limit=5",
    "headers": {"Authorization": HIDDEN, "Accept": "text/csv"},
    "auth": {"type": "basic", "username": "ada", "password": HIDDEN},
}
GRAPH = {"nodes": [{"id": "call", "kind": "http_request", "config": CALL}], "edges": []}


async def readers(client: Client, space: Space) -> list[Client]:
    """Those who see everything and may change nothing: by their role, or by their key."""
    _, viewer = await space.member(Role.VIEWER)
    key = await space.key([Scope.ACTIONS_READ, Scope.AUTOMATIONS_READ])
    return [client.with_token(viewer), client.with_token(key)]


async def test_of_an_action(client: Client, space: Space) -> None:
    body = {"label": "Call", "kind": "http_request", "config": CALL}
    made = read(await client.post(f"{space.path}/actions", json=body), 201)
    path = f"{space.path}/actions/{made['id']}"
    own = {**CALL, "kind": "http_request"}
    assert made["config"] == read(await client.get(path))["config"] == own
    for other in await readers(client, space):
        for answer in (await other.get(path), await other.get(f"{space.path}/actions")):
            assert CANARY not in answer.text
        assert read(await other.get(path))["config"] == {**SHOWN, "kind": "http_request"}
    # Given back as it was shown, with something else changed: it stays.
    changed = {**SHOWN, "method": "POST"}
    assert read(await client.patch(path, json={"config": changed}))["config"] == {
        **own,
        "method": "POST",
    }
    # For another URL, or for a new action, it must be given.
    elsewhere = {**SHOWN, "url": f"https://other.test/?api_key={HIDDEN}"}
    answer = await client.patch(path, json={"config": elsewhere})
    assert refused(answer) == (400, "validation_error")
    assert [one["path"] for one in answer.json()["details"]] == ["config.url"]
    answer = await client.post(f"{space.path}/actions", json={**body, "config": SHOWN})
    assert refused(answer) == (400, "validation_error")
    off = {**body, "config": SHOWN, "enabled": False}
    stopped = read(await client.post(f"{space.path}/actions", json=off), 201)
    answer = await client.patch(f"{space.path}/actions/{stopped['id']}", json={"enabled": True})
    assert refused(answer) == (400, "validation_error")


async def test_of_an_automation(client: Client, space: Space) -> None:
    body = {"label": "Call", "graph": GRAPH}
    made = read(await client.post(f"{space.path}/automations", json=body), 201)
    path = f"{space.path}/automations/{made['id']}"
    version = f"{path}/versions/{made['versionId']}"
    assert made["graph"]["nodes"][0]["config"] == CALL
    assert read(await client.get(version))["graph"]["nodes"][0]["config"] == CALL
    for other in await readers(client, space):
        for url in (path, version, f"{path}/export"):
            answer = await other.get(url)
            assert read(answer)["graph"]["nodes"][0]["config"] == SHOWN
            assert CANARY not in answer.text
    shown = {**GRAPH, "nodes": [{**GRAPH["nodes"][0], "config": SHOWN, "label": "Ask"}]}
    assert read(await client.post(f"{path}/validate", json={"graph": shown}))["valid"]
    changed = read(await client.patch(path, json={"graph": shown}))
    (node,) = changed["graph"]["nodes"]
    assert (node["label"], node["config"]) == ("Ask", CALL)
    assert changed["referenceIssues"] == []


async def test_credentials_left_out_of_a_document_are_required_before_it_runs(
    client: Client, space: Space
) -> None:
    body = {"label": "Call", "graph": GRAPH}
    made = read(await client.post(f"{space.path}/automations", json=body), 201)
    exported = await client.get(f"{space.path}/automations/{made['id']}/export")
    assert CANARY not in exported.text
    document: Any = {"document": read(exported)}
    draft = read(await client.post(f"{space.path}/automations/import", json=document), 201)
    issues = draft["referenceIssues"]
    assert {one["message"].partition(":")[0] for one in issues} == {
        "auth.password",
        "headers.Authorization",
        "url",
    }
    path = f"{space.path}/automations/{draft['id']}"
    assert refused(await client.post(f"{path}/publish", json={})) == (400, "validation_error")
    read(await client.patch(path, json={"graph": GRAPH}))
    read(await client.post(f"{path}/publish", json={}))


async def test_a_copy_is_no_way_to_read_them(client: Client, space: Space) -> None:
    body = {"label": "Call", "graph": GRAPH}
    made = read(await client.post(f"{space.path}/automations", json=body), 201)
    action = {"label": "Call", "kind": "http_request", "config": CALL}
    acts = read(await client.post(f"{space.path}/actions", json=action), 201)
    user_id, token = await space.member(Role.EDITOR)
    for item_id in (made["itemId"], acts["itemId"]):
        access: Json = {
            "accessMode": "restricted",
            "grants": [{"userId": str(user_id), "level": "view"}],
        }
        read(await client.put(f"/v1/items/{item_id}/access", json=access))
    other = client.with_token(token)
    copied = await other.post(f"{space.path}/automations/{made['id']}/duplicate", json={})
    assert read(copied, 201)["graph"]["nodes"][0]["config"] == SHOWN
    copied = await other.post(f"/v1/items/{acts['itemId']}/duplicate", json={})
    assert CANARY not in copied.text
    target = read(copied, 201)["targetId"]
    found = read(await other.get(f"{space.path}/actions/{target}"))
    assert (found["enabled"], found["config"]) == (False, {**SHOWN, "kind": "http_request"})


def test_no_bundle_has_them() -> None:
    assert ACTIONS.redact is not None
    assert VERSIONS.redact is not None
    assert ACTIONS.redact({"config": CALL})["config"] == SHOWN
    assert CANARY not in str(VERSIONS.redact({"graph": GRAPH}))

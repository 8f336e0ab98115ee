"""Pages of mounts: listed, synced, cancelled, removed."""

from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "<img src=x onerror=alert(1)>'\"{{7*7}}"
RESOURCE = {
    "externalType": "document",
    "externalId": "welcome",
    "name": HOSTILE,
    "surfaceKind": "document",
    "capabilities": ["read", "mount"],
}


async def mounted(client: Client, space: Space) -> str:
    """The page of a mount that is about to be read."""
    connections = f"{space.path}/integrations/connections"
    body = {"provider": "demo", "label": f"Ours {HOSTILE}", "shared": True}
    connection = read(await client.post(connections, json=body), 201)["id"]
    config = {"connectionId": connection, "resource": RESOURCE}
    item = {"kind": "external_resource", "title": "Handbook", "config": config}
    answer = await client.post("/v1/items", json={"workspaceId": str(space.id), **item})
    return f"/workspaces/{space.id}/integrations/mounts/{read(answer, 201)['item']['targetId']}"


async def test_a_mount_is_synced_cancelled_and_deleted(
    app: FastAPI, client: Client, space: Space, foreign: Space, owner: Visitor
) -> None:
    path = await mounted(client, space)
    listed = f"/workspaces/{space.id}/integrations/mounts"
    shown = (await owner.get(listed)).text
    assert (path in shown, HOSTILE in shown, "syncing" in shown) == (True, False, True)
    page = (await owner.get(path)).text
    assert (f"{path}/cancel" in page, 'hx-trigger="every 2s"' in page) == (True, True)
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        assert f"{path}/cancel" not in (await reader.get(path)).text
        for action in ("sync", "cancel", "delete"):
            assert (await reader.send_form(f"{path}/{action}", path)).status_code == 403
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(path)).status_code == 404
    assert (await owner.send_form(f"{path}/cancel", path)).status_code == 303
    cancelled = (await owner.get(path)).text
    assert f"{path}/sync" in cancelled
    assert (await owner.send_form(f"{path}/sync", path)).status_code == 303
    assert "syncing" in (await owner.get(path)).text
    gone = await owner.send_form(f"{path}/delete", path)
    assert (gone.status_code, gone.headers["location"]) == (303, listed)
    assert (await owner.get(path)).status_code == 404
    assert "No mounts" in (await owner.get(listed)).text

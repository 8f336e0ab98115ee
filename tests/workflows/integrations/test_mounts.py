"""Mounts: placed once, kept in step, and nothing of them deleted."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select
from temporalio.service import RPCError

from models.content.items.rules import MAX_TREE_DEPTH
from models.sources.mounts.queries import mount
from tests.support.client import Client
from tests.support.endpoint import reply
from tests.support.engine import Engine
from tests.support.items import read
from tests.support.patience import eventually
from tests.support.spaces import Space
from tests.workflows.integrations.conftest import Demo

pytestmark = pytest.mark.takes(seconds=20)


async def entries_of(demo: Demo, mount_id: str) -> dict[str, Any]:
    """The rows of a recursive mount, by the ids of their resources."""
    async with demo.space.database.transaction() as work:
        rows = await work.rows(select(mount).where(mount.c.root_mount_id == mount_id))
        return {row.external_id: row for row in rows}


@pytest.mark.long
async def test_the_same_resource_below_the_same_parent_is_the_same_mount(demo: Demo) -> None:
    answers = await asyncio.gather(*(demo.call("mount", "welcome") for _ in range(4)))
    assert sorted(one.status_code for one in answers) == [200, 200, 200, 201]
    assert len({one.json()["data"]["mount"]["id"] for one in answers}) == 1
    made = answers[0].json()["data"]
    assert (made["item"]["kind"], made["item"]["title"]) == ("external_resource", "Welcome.md")
    assert made["item"]["targetId"] == made["mount"]["id"]
    body = {"kind": "folder", "title": "Elsewhere"}
    folder = (await demo.client.post("/v1/items", json=body)).json()["data"]["item"]["id"]
    other = await demo.does("mount", "welcome", parentItemId=folder, title="Mine")
    assert other["item"]["title"] == "Mine"
    assert other["mount"]["id"] != made["mount"]["id"]


async def test_a_key_gives_the_same_answer(demo: Demo) -> None:
    key = {"Idempotency-Key": "one mount"}
    first = await demo.call("mount", "welcome", headers=key)
    again = await demo.call("mount", "welcome", headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()


@pytest.mark.long
async def test_a_folder_is_mounted_with_all_below_it_and_circles_end(demo: Demo) -> None:
    made = await demo.does("mount", "handbook", recursive=True)
    whole = await demo.synced(made["mount"]["id"])
    assert (whole["status"], whole["entries"], whole["truncated"]) == ("active", 5, False)
    found = await entries_of(demo, whole["id"])
    assert set(found) == {"welcome", "travel", "archive", "old-notes", "circle"}
    assert whole["nextRunAt"] is not None


@pytest.mark.long
async def test_a_vanished_resource_is_stale_and_stays(demo: Demo) -> None:
    made = await demo.does("mount", "handbook", recursive=True)
    mount_id = made["mount"]["id"]
    await demo.synced(mount_id)
    await demo.becomes(vanished=["welcome"])
    assert (await demo.sync(mount_id))["status"] == "active"
    found = await entries_of(demo, mount_id)
    assert (found["welcome"].status, found["travel"].status) == ("stale", "active")
    await demo.becomes(vanished=["handbook"])
    gone = await demo.sync(mount_id)
    assert gone["status"] == "stale"
    assert gone["vanishedAt"] is not None
    assert len(await entries_of(demo, mount_id)) == 5
    await demo.becomes()
    assert (await demo.sync(mount_id))["status"] == "active"
    assert (await entries_of(demo, mount_id))["welcome"].status == "active"


async def test_a_denied_resource_shows_why(demo: Demo) -> None:
    made = await demo.does("mount", "handbook")
    await demo.becomes(denied=["handbook"])
    shown = await demo.sync(made["mount"]["id"])
    assert (shown["status"], "denied" in shown["error"]) == ("error", True)


@pytest.mark.long
async def test_items_that_people_deleted_and_renamed_stay_so(demo: Demo) -> None:
    mount_id = (await demo.does("mount", "handbook", recursive=True))["mount"]["id"]
    await demo.synced(mount_id)
    found = await entries_of(demo, mount_id)
    assert (await demo.client.delete(f"/v1/items/{found['welcome'].item_id}")).is_success
    path = f"/v1/items/{found['travel'].item_id}"
    assert (await demo.client.patch(path, json={"title": "Ours"})).is_success
    await demo.becomes(edition=2)
    await demo.sync(mount_id)
    assert len(await entries_of(demo, mount_id)) == 5
    assert (await demo.client.get(path)).json()["data"]["title"] == "Ours"
    assert (await demo.client.get(f"/v1/items/{found['welcome'].item_id}")).status_code == 404


async def test_a_cancelled_sync_writes_nothing_more(demo: Demo) -> None:
    await demo.becomes(generated=15_000)
    made = await demo.does("mount", "generated", recursive=True)
    mount_id = made["mount"]["id"]
    cancelled = await demo.client.post(f"{demo.space.path}/mounts/{mount_id}/cancel")
    shown = cancelled.json()["data"]
    assert (shown["syncing"], shown["status"]) == (False, "error")

    async def at_rest() -> bool:
        async with demo.space.database.transaction() as work:
            count = select(func.count()).where(mount.c.root_mount_id == mount_id)
            before = await work.scalar(count)
        await asyncio.sleep(0.3)
        async with demo.space.database.transaction() as work:
            return bool(before == await work.scalar(count))

    await eventually(at_rest, what="the end of the cancelled sync")
    assert len(await entries_of(demo, mount_id)) < 15_000


@pytest.mark.long
async def test_a_deleted_mount_goes_to_the_trash_with_its_entries(demo: Demo) -> None:
    mount_id = (await demo.does("mount", "handbook", recursive=True))["mount"]["id"]
    await demo.synced(mount_id)
    found = await entries_of(demo, mount_id)
    path = f"{demo.space.path}/mounts/{mount_id}"
    assert (await demo.client.delete(path)).is_success
    assert (await demo.client.get(path)).status_code == 404
    assert (await demo.client.get(f"/v1/items/{found['travel'].item_id}")).status_code == 404


@pytest.mark.long
async def test_a_due_time_brings_a_mount_in_step(demo: Demo, engine: Engine) -> None:
    mount_id = (await demo.does("mount", "handbook", recursive=True))["mount"]["id"]
    await demo.synced(mount_id)
    await demo.becomes(vanished=["welcome"])
    schedule = engine.client.get_schedule_handle(f"mount-schedule/{mount_id}")

    async def fired() -> bool:
        try:
            await schedule.trigger()
        except RPCError:
            return False  # its intent is still on the way
        return True

    await eventually(fired, what="the schedule of the mount")

    async def in_step() -> bool:
        return (await entries_of(demo, mount_id))["welcome"].status == "stale"

    await eventually(in_step, what="the sync of the due time")
    assert (await demo.synced(mount_id))["status"] == "active"


async def test_a_resource_that_is_not_there_is_not_mounted(demo: Demo) -> None:
    assert (await demo.call("mount", "nowhere")).status_code == 404
    listed = (await demo.client.get(f"{demo.space.path}/mounts")).json()["data"]
    assert listed == {"mounts": [], "cursor": None}


@pytest.mark.long
async def test_a_mount_below_itself_does_not_grow(demo: Demo) -> None:
    """The same folder is mounted in its own mount, in that one again, and once more beside it."""
    outer = await demo.does("mount", "handbook", recursive=True)
    mounts = [await demo.synced(outer["mount"]["id"])]
    for _ in range(3):
        inside = (await entries_of(demo, mounts[-1]["id"]))["archive"].item_id
        made = await demo.does("mount", "handbook", recursive=True, parentItemId=str(inside))
        mounts.append(await demo.synced(made["mount"]["id"]))
    again = await demo.does("mount", "archive", recursive=True, parentItemId=outer["item"]["id"])
    mounts.append(await demo.synced(again["mount"]["id"]))
    sizes = [len(await entries_of(demo, one["id"])) for one in mounts]
    assert sizes[:4] == [5] * 4
    for _ in range(2):
        after = await asyncio.gather(*(demo.sync(one["id"]) for one in mounts))
        assert {one["status"] for one in after} == {"active"}
        assert [len(await entries_of(demo, one["id"])) for one in mounts] == sizes
    listed = (await demo.client.get("/v1/items?limit=100")).json()["data"]["items"]
    assert len(listed) == sum(sizes) + len(mounts)


async def endless_folder(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A WebDAV server whose every folder holds itself, and a file."""
    method, path, _ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ", 2)
    place = path.rstrip("/")
    folder = "<d:resourcetype><d:collection/></d:resourcetype>"
    shown = [(f"{place}/", folder), (f"{place}/again/", folder), (f"{place}/plan.md", "")]
    parts = "".join(
        f"<d:response><d:href>{href}</d:href><d:propstat><d:prop>{kind}</d:prop></d:propstat>"
        "</d:response>"
        for href, kind in shown
    )
    assert method == "PROPFIND"
    writer.write(reply(207, f'<d:multistatus xmlns:d="DAV:">{parts}</d:multistatus>'))
    writer.close()


@pytest.mark.long
async def test_a_folder_that_holds_itself_by_ever_new_paths_ends(
    client: Client, space: Space, engine: Engine
) -> None:
    assert engine.database is space.database
    server = await asyncio.start_server(endless_folder, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/dav/"
    body = {"provider": "webdav", "label": "D", "config": {"baseUrl": url, "auth": "none"}}
    made = await client.post(f"{space.path}/integrations/connections", json=body)
    dav = Demo(client, space, read(made, 201)["id"])
    mounted = await dav.does("mount", "again", recursive=True)
    whole = await dav.synced(mounted["mount"]["id"])
    assert whole["status"] == "active"
    entries = await entries_of(dav, whole["id"])
    assert "again/again/plan.md" in entries
    assert len(entries) <= 2 * MAX_TREE_DEPTH
    assert len(await entries_of(dav, (await dav.sync(whole["id"]))["id"])) == len(entries)
    server.close()


@pytest.mark.long
async def test_no_mount_goes_below_what_it_holds(demo: Demo) -> None:
    outer = await demo.does("mount", "handbook", recursive=True)
    await demo.synced(outer["mount"]["id"])
    inside = (await entries_of(demo, outer["mount"]["id"]))["archive"].item_id
    made = await demo.does("mount", "handbook", recursive=True, parentItemId=str(inside))
    await demo.synced(made["mount"]["id"])
    deep = (await entries_of(demo, made["mount"]["id"]))["archive"].item_id
    moves = [(outer["item"]["id"], deep), (outer["item"]["id"], inside), (made["item"]["id"], deep)]
    for item_id, parent_id in moves:
        place = {"parentItemId": str(parent_id)}
        answer = await demo.client.post(f"/v1/items/{item_id}/move", json=place)
        assert answer.status_code == 400, answer.text
        assert "into itself" in answer.json()["details"][0]["message"]
    # A cycle by two moves at once: each alone is possible.
    body = {"kind": "folder", "title": "Elsewhere"}
    folder = (await demo.client.post("/v1/items", json=body)).json()["data"]["item"]["id"]
    other = await demo.does("mount", "handbook", recursive=True, parentItemId=folder)
    await demo.synced(other["mount"]["id"])
    pair = [str(made["item"]["id"]), str(other["item"]["id"])]
    answers = await asyncio.gather(
        *(
            demo.client.post(f"/v1/items/{one}/move", json={"parentItemId": two})
            for one, two in (pair, pair[::-1])
        )
    )
    assert sorted(one.status_code for one in answers) == [200, 400]
    await demo.sync(outer["mount"]["id"])
    deleted = await demo.client.delete(f"/v1/items/{outer['item']['id']}")
    assert deleted.is_success, deleted.text

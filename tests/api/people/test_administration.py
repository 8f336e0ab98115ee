"""The audit log, usage and plan of a workspace, and the state of the platform."""

import os
from typing import Any

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Role
from models.workspace.system import beat, leave
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import Queue
from tests.support.admins import admin_session
from tests.support.automations import publish, read
from tests.support.client import Client
from tests.support.engine import graph, node
from tests.support.patience import eventually
from tests.support.spaces import Space

Json = dict[str, Any]

COUNTDOWN = {"mode": "countdown", "targetDurationMs": 3_600_000}


async def audit(client: Client, space: Space, count: int, **query: str) -> Json:
    """The audit log once it has this number of entries; calls are logged after their answers."""
    found: Json = {}

    async def is_there() -> bool:
        nonlocal found
        answer = await client.get(f"{space.path}/audit-log", params=query)
        found = read(answer)
        return len(found["entries"]) >= count

    await eventually(is_there, what=f"{count} entries")
    return found


async def test_the_audit_log_says_who_changed_something(client: Client, space: Space) -> None:
    user_id, token = await space.member(Role.VIEWER)
    viewer = client.with_token(token)
    read(await client.post("/v1/items", json={"kind": "folder", "title": "New"}), 201)
    read(await client.get("/v1/items"))
    assert (await viewer.patch(space.path, json={"name": "Mine"})).status_code == 403

    entries = (await audit(client, space, 2))["entries"]
    assert [(one["method"], one["path"], one["status"]) for one in entries] == [
        ("PATCH", space.path, 403),
        ("POST", "/v1/items", 201),
    ]
    assert [one["userId"] for one in entries] == [str(user_id), str(space.user_id)]
    assert entries[0]["error"] == "denied"
    assert entries[0]["apiKeyId"] == entries[0]["principalId"]

    page = await audit(client, space, 1, limit="1")
    assert page["entries"] == entries[:1]
    rest = await audit(client, space, 1, limit="1", cursor=page["cursor"])
    assert rest["entries"] == entries[1:]


async def test_the_audit_log_leaves_out_what_changes_nothing(client: Client, space: Space) -> None:
    body = {"label": "Goods", "fields": [{"label": "Note", "kind": "text"}]}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)
    place = f"/v1/databases/{database['id']}"
    note = database["fields"][1]
    made = await publish(client, space, graph=graph(node("a", "transform", output={})))
    automation = f"{space.path}/automations/{made['id']}"
    # A database, an automation, and its publication.
    before = len((await audit(client, space, 3))["entries"])
    assert before == 3
    read(await client.post(f"{place}/records/query", json={}))
    preview = {"kind": "long_text", "preview": True}
    read(await client.post(f"{place}/fields/{note['id']}/convert", json=preview))
    read(await client.post(f"{automation}/validate", json={"graph": made["graph"]}))
    dry = {"Prefer": "dry-run"}
    await client.post(f"{place}/records", json={"title": "Bolt"}, headers=dry)
    path = f"{space.path}/databases/{database['id']}"
    read(await client.patch(path, json={"label": "Parts"}))
    entries = (await audit(client, space, before + 1))["entries"]
    assert len(entries) == before + 1
    assert (entries[0]["method"], entries[0]["path"]) == ("PATCH", path)


async def test_a_proposal_is_audited_as_one(client: Client, space: Space) -> None:
    body = {"label": "Goods", "fields": []}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)
    before = len((await audit(client, space, 1))["entries"])
    place = f"/v1/databases/{database['id']}/records"
    for prefer in ("dry-run", "propose"):
        answer = await client.post(place, json={"title": "Bolt"}, headers={"Prefer": prefer})
        assert answer.is_success, answer.text
    read(await client.post(place, json={"title": "Nut"}), 201)
    entries = (await audit(client, space, before + 2))["entries"]
    assert [(one["path"], one["status"], one["dryRun"]) for one in entries[:2]] == [
        (place, 201, False),
        (place, 202, True),
    ]


async def test_usage_counts_what_a_workspace_holds_and_does(client: Client, space: Space) -> None:
    database = read(await client.post(f"{space.path}/databases", json={"label": "Goods"}), 201)
    place = f"/v1/databases/{database['id']}/records"
    records = [read(await client.post(place, json={"title": "x"}), 201) for _ in range(3)]
    read(await client.delete(f"/v1/records/{records[0]['id']}"))
    headers = {"Content-Type": "text/plain"}
    upload = await client.post(f"{space.path}/files?name=a.txt", content=b"Words", headers=headers)
    read(upload, 201)
    made = await publish(client, space, graph=graph(node("a", "transform", output={})))
    read(await client.post(f"{space.path}/automations/{made['id']}/run", json={}))

    async def all_logged() -> bool:
        return bool(read(await client.get(f"{space.path}/usage"))["thisMonth"]["apiCalls"] >= 8)

    await eventually(all_logged, what="the log of the calls")
    usage = read(await client.get(f"{space.path}/usage"))
    assert usage["plan"] == "free"
    assert usage["holds"] == {
        "members": 1,
        "items": 2,
        "databases": 1,
        "records": 2,
        "automations": 1,
        "files": 1,
        "fileBytes": 5,
        "webhookEndpoints": 0,
    }
    assert usage["thisMonth"]["automationRuns"] == 1
    assert usage["thisMonth"]["webhookDeliveries"] == 0


async def test_a_plan_is_changed_by_owners(client: Client, space: Space) -> None:
    path = f"{space.path}/plan"
    assert read(await client.patch(path, json={"plan": "business"})) == {"plan": "business"}
    assert read(await client.get(f"{space.path}/usage"))["plan"] == "business"
    for bad in ({"plan": "golden"}, {}, {"plan": None}, {"plan": "free", "seats": 5}):
        assert (await client.patch(path, json=bad)).status_code == 400
    _, token = await space.member(Role.ADMIN)
    assert (await client.with_token(token).patch(path, json={"plan": "free"})).status_code == 403


async def test_administrators_see_what_waits_and_who_works(
    client: Client, space: Space, issuer: DevelopmentIssuer
) -> None:
    admin = client.with_token(admin_session(issuer))
    made = await publish(client, space, graph=graph(node("a", "transform", output={})))
    read(await client.post(f"{space.path}/automations/{made['id']}/run", json={}))
    worker_id = new_id()
    for _ in range(2):
        async with space.database.transaction() as work:
            await beat(work, worker_id, "here", os.getpid(), [Queue.IO])
    state = read(await admin.get("/v1/admin/system"))
    assert state["relay"]["waiting"] >= 1
    assert state["relay"]["oldestSeconds"] >= 0
    assert state["events"]["waiting"] >= 0
    queued = [one for one in state["work"] if one["kind"] == "automation_run"]
    assert any(one["status"] == "queued" and one["count"] >= 1 for one in queued)
    (own,) = [one for one in state["workers"] if one["id"] == str(worker_id)]
    assert (own["alive"], own["queues"]) == (True, ["io"])
    queues = {one["name"]: one["workers"] for one in state["queues"]}
    assert queues.keys() == {"automation", "io", "io-overflow", "bulk"}
    assert queues["io"] >= 1

    async with space.database.transaction() as work:
        await leave(work, worker_id)
    left = read(await admin.get("/v1/admin/system"))["workers"]
    assert str(worker_id) not in {one["id"] for one in left}
    assert (await client.get("/v1/admin/system")).status_code == 403


async def test_a_clock_is_work_if_it_ends_by_itself(
    client: Client, space: Space, issuer: DevelopmentIssuer
) -> None:
    admin = client.with_token(admin_session(issuer))

    async def active() -> int:
        shown = read(await admin.get("/v1/admin/system"))["work"]
        place = ("time_entry", "active")
        return sum(one["count"] for one in shown if (one["kind"], one["status"]) == place)

    before = await active()
    for mode, more in (({"mode": "stopwatch"}, 0), (COUNTDOWN, 1)):
        body = {"targetKind": "workspace", **mode}
        read(await client.post(f"{space.path}/time-entries", json=body), 201)
        assert await active() == before + more

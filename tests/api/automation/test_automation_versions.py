"""Versions over HTTP: lists, restore, and numbers without gaps under contention."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.joins import item
from models.core.access.rules import Role
from tests.support.automations import (
    create,
    numbered,
    path_of,
    publish,
    read,
    refusal,
    row_counts,
)
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def versions_of(client: Client, made: Json) -> list[Json]:
    listed: list[Json] = read(
        await client.get(f"{path_of(made)}/versions", params={"limit": "100"})
    )["versions"]
    return listed


def restore(client: Client, made: Json, version_id: Any, **headers: str) -> Any:
    return client.post(f"{path_of(made)}/versions/{version_id}/restore", headers=headers)


async def test_versions_are_listed_and_shown(client: Client, space: Space) -> None:
    made = await publish(client, space, graph=numbered(1))
    for number in (2, 3):
        await client.patch(path_of(made), json={"graph": numbered(number)})
        await client.post(f"{path_of(made)}/publish", json={"note": f"No. {number}"})
    listed = await versions_of(client, made)
    assert [(one["version"], one["status"], one.get("note")) for one in listed] == [
        (3, "published", "No. 3"),
        (2, "archived", "No. 2"),
        (1, "archived", None),
    ]
    assert {one["createdByUserId"] for one in listed} == {str(space.user_id)}
    page = read(await client.get(f"{path_of(made)}/versions", params={"limit": "2"}))
    rest = read(
        await client.get(
            f"{path_of(made)}/versions", params={"limit": "2", "cursor": page["cursor"]}
        )
    )
    assert page["versions"] + rest["versions"] == listed
    assert rest["cursor"] is None
    shown = read(await client.get(f"{path_of(made)}/versions/{listed[1]['id']}"))
    assert shown["graph"]["nodes"][0]["config"] == {"output": {"number": 2}}
    assert shown == {**listed[1], "graph": shown["graph"], "triggerConfig": {"kind": "manual"}}


async def test_a_cursor_belongs_to_its_automation(client: Client, space: Space) -> None:
    first, second = [await publish(client, space, graph=numbered(1)) for _ in range(2)]
    for one in (first, second):
        await client.patch(path_of(one), json={"graph": numbered(2)})
    page = read(await client.get(f"{path_of(first)}/versions", params={"limit": "1"}))
    carried = await client.get(
        f"{path_of(second)}/versions", params={"limit": "1", "cursor": page["cursor"]}
    )
    assert refusal(carried) == (400, "validation_error")
    assert carried.json()["details"][0]["path"] == "cursor"


async def test_restore_opens_a_draft_and_puts_the_open_one_away(
    client: Client, space: Space
) -> None:
    made = await publish(client, space, graph=numbered(1))
    await client.patch(path_of(made), json={"graph": numbered(2)})
    restored = read(await restore(client, made, made["publishedVersionId"]))
    assert (restored["version"], restored["publishedVersionId"]) == (3, made["publishedVersionId"])
    assert restored["graph"]["nodes"][0]["config"] == {"output": {"number": 1}}
    assert restored["hasUnpublishedChanges"] is False
    newest, archived, _ = await versions_of(client, made)
    assert (newest["status"], newest["restoredFromVersionId"]) == (
        "draft",
        made["publishedVersionId"],
    )
    assert archived["status"] == "archived"
    # An archived draft can be brought back too.
    again = read(await restore(client, made, archived["id"]))
    assert again["graph"]["nodes"][0]["config"] == {"output": {"number": 2}}


@pytest.mark.parametrize("operation", ["restore", "publish", "export", "test-run", "run-from-node"])
async def test_a_version_of_another_automation_is_named_only_with_access_to_it(
    client: Client, space: Space, foreign: Space, operation: str
) -> None:
    made, other, hidden = [await publish(client, space) for _ in range(3)]
    theirs = await publish(client.with_token(foreign.token), foreign)
    body = {"accessMode": "restricted", "grants": []}
    read(await client.put(f"/v1/items/{hidden['itemId']}/access", json=body))
    _, token = await space.member(Role.EDITOR)
    member = client.with_token(token)

    async def name(version_id: Any) -> Any:
        path = path_of(made)
        match operation:
            case "restore":
                return await restore(member, made, version_id)
            case "publish":
                return await member.post(f"{path}/publish", json={"versionId": str(version_id)})
            case "export":
                return await member.get(f"{path}/export", params={"versionId": str(version_id)})
        body = {"automationVersionId": str(version_id)}
        if operation == "run-from-node":
            body["nodeId"] = "wait"
        return await member.post(f"{path}/{operation}", json=body)

    before = await row_counts(space)
    seen = await name(other["versionId"])
    assert refusal(seen) == (400, "validation_error")
    (detail,) = seen.json()["details"]
    named = "automationVersionId" if "run" in operation else "versionId"
    assert detail == {"path": named, "message": "The version belongs to another automation."}
    unseen = [await name(one) for one in (hidden["versionId"], theirs["versionId"], uuid4())]
    assert {refusal(answer) for answer in unseen} == {(404, "not_found")}
    assert len({answer.content for answer in unseen}) == 1
    assert await row_counts(space) == before


async def test_restore_of_what_no_longer_compiles_is_refused(client: Client, space: Space) -> None:
    database = read(await client.post(f"{space.path}/databases", json={"label": "Goods"}), 201)
    query = {
        "nodes": [{"id": "q", "kind": "query_records", "config": {"databaseId": database["id"]}}]
    }
    made = await publish(client, space, graph=query)
    await client.patch(path_of(made), json={"graph": numbered(1)})
    await client.post(f"{path_of(made)}/publish", json={})
    async with space.database.transaction() as work:
        await work.execute(
            update(item).where(item.c.target_id == database["id"]).values(deleted_at=work.now)
        )
    before = await row_counts(space)
    refused = await restore(client, made, made["publishedVersionId"])
    assert refusal(refused) == (400, "validation_error")
    assert refused.json()["details"] == [
        {
            "path": "graph.q",
            "message": f'config.databaseId: Database "{database["id"]}" not found.',
        }
    ]
    assert await row_counts(space) == before


async def test_restore_with_a_key_opens_one_draft(client: Client, space: Space) -> None:
    made = await publish(client, space)
    key = {"Idempotency-Key": uuid4().hex}
    first = await restore(client, made, made["publishedVersionId"], **key)
    again = await restore(client, made, made["publishedVersionId"], **key)
    assert first.content == again.content
    assert again.headers["idempotency-replayed"] == "true"
    assert len(await versions_of(client, made)) == 2


async def test_twenty_movers_at_once_leave_no_gap(client: Client, space: Space) -> None:
    made = await publish(client, space, graph=numbered(0))
    path = path_of(made)

    async def move(number: int) -> int:
        calls = (
            lambda: client.patch(path, json={"graph": numbered(number)}),
            lambda: restore(client, made, made["publishedVersionId"]),
            lambda: client.post(f"{path}/publish", json={}),
            lambda: client.post(f"{path}/discard-draft"),
        )
        answer = await calls[number % 4]()
        # Publishing and discarding a draft that another mover took is the only refusal.
        assert answer.status_code == 200 or (number % 4 >= 2 and answer.status_code == 409)
        return int(answer.status_code)

    statuses = await asyncio.gather(*(move(number) for number in range(20)))
    assert statuses.count(200) >= 10
    listed = await versions_of(client, made)
    numbers = [one["version"] for one in listed]
    assert numbers == list(range(len(listed), 0, -1))
    states = [one["status"] for one in listed]
    assert states.count("published") == 1
    assert states.count("draft") <= 1
    shown = read(await client.get(path))
    by_status = {one["status"]: one["id"] for one in listed}
    assert shown["publishedVersionId"] == by_status["published"]
    assert shown.get("draftVersionId") == by_status.get("draft")
    async with space.database.transaction() as work:
        last = await work.scalar(
            select(automation.c.last_version).where(automation.c.id == made["id"])
        )
        highest = await work.scalar(
            select(func.max(automation_version.c.version)).where(
                automation_version.c.automation_id == made["id"]
            )
        )
    assert last == highest == len(listed)


async def test_a_run_is_of_the_version_it_was_accepted_with(client: Client, space: Space) -> None:
    made = await publish(client, space)
    run = read(await client.post(f"{path_of(made)}/run", json={}))
    await client.patch(path_of(made), json={"graph": numbered(2)})
    await client.post(f"{path_of(made)}/publish", json={})
    later = read(await client.get(f"{path_of(made)}/runs/{run['id']}"))
    assert later["automationVersionId"] == made["publishedVersionId"]
    await client.post(f"{path_of(made)}/runs/{run['id']}/cancel")


async def test_creating_an_automation_does_not_publish_it(client: Client, space: Space) -> None:
    made = await create(client, space)
    assert [one["status"] for one in await versions_of(client, made)] == ["draft"]


async def test_a_published_version_runs_although_its_draft_had_issues(
    client: Client, space: Space
) -> None:
    headers = {"X-Key": {"type": "secret", "value": "KEY"}}
    call = {"url": "https://example.test/", "headers": headers}
    graph = {"nodes": [{"id": "call", "kind": "http_request", "config": call}]}
    made = await create(client, space, graph=graph)
    assert made["referenceIssues"]
    await client.put(f"{space.path}/secrets/KEY", json={"value": "x"})
    read(await client.post(f"{path_of(made)}/publish", json={}))
    async with space.database.transaction() as work:
        kept = select(automation_graph.c.plan).where(automation_graph.c.automation_id == made["id"])
        assert await work.scalar(kept) is not None

"""Canaries: an experiment shares the runs of an automation out between published versions."""

import uuid
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import update

from cli.supervisor.development import DevelopmentIssuer
from models.automation.automation_runs.tables import automation_run
from models.core.base import Id
from tests.support.admins import admin_session
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.engine import graph, node
from tests.support.spaces import Space

PATH = "/v1/admin/experiments"
Json = dict[str, Any]


@pytest.fixture
def admin(client: Client, issuer: DevelopmentIssuer) -> Client:
    return client.with_token(admin_session(issuer))


async def two_versions(client: Client, space: Space) -> tuple[Json, str, str]:
    """An automation and the ids of two versions, of which the second one is published."""
    made = await publish(client, space, graph=graph(node("a", "transform", output={})))
    changed = {"graph": graph(node("b", "transform", output={}), node("c", "transform", output={}))}
    read(await client.patch(path_of(made), json=changed))
    newer = read(await client.post(f"{path_of(made)}/publish", json={}))
    return newer, made["publishedVersionId"], newer["publishedVersionId"]


async def canary(admin: Client, made: Json, versions: tuple[str, ...], **changes: Any) -> Json:
    body = {
        "name": "Canary",
        "targetType": "automation_version",
        "targetKey": made["id"],
        "assignmentUnit": "device",
        "status": "scheduled",
        "variants": [
            {"id": version, "label": str(place), "split": 100 / len(versions)}
            for place, version in enumerate(versions)
        ],
        **changes,
    }
    experiment = read(await admin.post(PATH, json=body), 201)
    started: Json = read(
        await admin.patch(f"{PATH}/{experiment['id']}", json={"status": "running"})
    )
    return started


async def run(client: Client, made: Json, count: int = 1) -> list[Json]:
    return [read(await client.post(f"{path_of(made)}/run", json={})) for _ in range(count)]


@pytest.mark.long
async def test_runs_are_shared_out_and_counted_by_version(
    client: Client, admin: Client, space: Space
) -> None:
    made, old, new = await two_versions(client, space)
    started = await canary(admin, made, (new, old))
    runs = await run(client, made, 24)
    seen = Counter(one["automationVersionId"] for one in runs)
    assert set(seen) == {old, new}
    for one in runs:
        nodes = [each["nodeId"] for each in one["nodeRuns"]]
        assert nodes == (["a"] if one["automationVersionId"] == old else ["b", "c"])
        assert one["metadata"]["progress"]["total"] == len(nodes)

    failed = [Id(one["id"]) for one in runs if one["automationVersionId"] == old]
    async with space.database.transaction() as work:
        these = automation_run.c.id.in_(failed)
        end = {"status": "failed", "completed_at": work.now, "error": "x"}
        await work.execute(update(automation_run).where(these).values(end))
    shown = read(await admin.get(f"{PATH}/{started['id']}"))
    figures = {one["id"]: one for one in shown["variants"]}
    assert {version: figures[version]["exposures"] for version in figures} == dict(seen)
    assert (figures[old]["errorRate"], figures[new]["errorRate"]) == (1, 0)
    assert shown["guardrail"] == {"breached": True, "variantIds": [old]}


async def test_only_a_running_canary_draws(client: Client, admin: Client, space: Space) -> None:
    made, old, new = await two_versions(client, space)
    all_old = [{"id": new, "label": "n", "split": 0}, {"id": old, "label": "o", "split": 100}]
    started = await canary(admin, made, (new, old), variants=all_old)
    assert (await run(client, made))[0]["automationVersionId"] == old
    tested = read(await client.post(f"{path_of(made)}/test-run", json={}))
    assert tested["automationVersionId"] == new
    place = f"{PATH}/{started['id']}"
    read(await admin.patch(place, json={"status": "paused"}))
    assert (await run(client, made))[0]["automationVersionId"] == new
    read(await admin.patch(place, json={"allocation": 0, "status": "running"}))
    assert (await run(client, made))[0]["automationVersionId"] == new
    read(await admin.patch(place, json={"status": "paused"}))
    read(await admin.patch(place, json={"allocation": 100, "status": "running"}))
    read(
        await client.patch(path_of(made), json={"graph": graph(node("d", "transform", output={}))})
    )
    newest = read(await client.post(f"{path_of(made)}/publish", json={}))
    assert (await run(client, made))[0]["automationVersionId"] == newest["publishedVersionId"]


async def test_the_same_person_keeps_a_version(client: Client, admin: Client, space: Space) -> None:
    made, old, new = await two_versions(client, space)
    await canary(admin, made, (new, old), assignmentUnit="user")
    assert len({one["automationVersionId"] for one in await run(client, made, 8)}) == 1


async def test_variants_are_published_versions_of_the_automation(
    client: Client, admin: Client, space: Space
) -> None:
    made, old, new = await two_versions(client, space)
    read(
        await client.patch(path_of(made), json={"graph": graph(node("d", "transform", output={}))})
    )
    draft = read(await client.get(path_of(made)))["draftVersionId"]
    _, foreign, _ = await two_versions(client, space)
    for other in (draft, foreign, str(uuid.uuid4()), "mine"):
        body = {
            "name": "Canary",
            "targetType": "automation_version",
            "targetKey": made["id"],
            "variants": [
                {"id": new, "label": "new", "split": 50},
                {"id": other, "label": "other", "split": 50},
            ],
        }
        answer = await admin.post(PATH, json=body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["details"][0]["path"] == "variants.1.id"
    assert old != new

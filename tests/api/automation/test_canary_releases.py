"""Canaries by editors of an automation: started, watched, promoted and rolled back."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import update

from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Role
from models.core.base import Id
from tests.support.automations import path_of, publish, read, refusal
from tests.support.client import Client
from tests.support.engine import graph, node
from tests.support.spaces import Space

Json = dict[str, Any]


async def drafted(client: Client, space: Space) -> Json:
    """A published automation with an open draft."""
    made = await publish(client, space, graph=graph(node("a", "transform", output={})))
    changed = {"graph": graph(node("b", "transform", output={}))}
    return read(await client.patch(path_of(made), json=changed))


async def run(client: Client, made: Json, count: int) -> Counter[str]:
    """The versions that runs took."""
    runs = [read(await client.post(f"{path_of(made)}/run", json={})) for _ in range(count)]
    return Counter(one["automationVersionId"] for one in runs)


@pytest.mark.long
async def test_a_canary_is_started_watched_and_promoted(client: Client, space: Space) -> None:
    made = await drafted(client, space)
    path = f"{path_of(made)}/canary"
    assert read(await client.get(path)) == {}
    old, new = made["publishedVersionId"], made["draftVersionId"]
    started = read(await client.post(path, json={"percent": 50}))["canary"]
    assert (started["control"]["versionId"], started["candidate"]["versionId"]) == (old, new)
    assert (started["control"]["version"], started["candidate"]["version"]) == (1, 2)
    assert (started["control"]["percent"], started["candidate"]["percent"]) == (50, 50)
    assert read(await client.get(path_of(made)))["publishedVersionId"] == new
    seen = await run(client, made, 24)
    assert set(seen) == {old, new}
    async with space.database.transaction() as work:
        these = automation_run.c.automation_version_id == Id(new)
        end = {"status": "failed", "completed_at": work.now, "error": "x"}
        await work.execute(update(automation_run).where(these).values(end))
    read(await client.post(f"{path_of(made)}/test-run", json={}))
    watched = read(await client.get(path))["canary"]
    assert watched["candidate"]["runs"] == {"failed": seen[new]}
    assert watched["control"]["runs"] == {"queued": seen[old]}
    answer = await client.post(path, json={"percent": 5})
    assert refusal(answer) == (409, "conflict")
    assert read(await client.post(f"{path}/promote", json={})) == {}
    assert set(await run(client, made, 8)) == {new}
    for verb in ("promote", "stop"):
        assert refusal(await client.post(f"{path}/{verb}", json={})) == (409, "conflict")


async def test_a_canary_that_is_stopped_leaves_the_version_from_before(
    client: Client, space: Space
) -> None:
    made = await drafted(client, space)
    path = f"{path_of(made)}/canary"
    old, new = made["publishedVersionId"], made["draftVersionId"]
    read(await client.post(path, json={"percent": 99}))
    assert read(await client.post(f"{path}/stop", json={})) == {}
    assert read(await client.get(path_of(made)))["publishedVersionId"] == old
    assert set(await run(client, made, 8)) == {old}
    again = read(await client.post(path, json={"percent": 1, "versionId": new}))["canary"]
    assert again["candidate"]["versionId"] == new
    assert again["candidate"]["runs"] == {}, "figures begin anew"


async def test_publishing_another_version_ends_a_canary(client: Client, space: Space) -> None:
    made = await drafted(client, space)
    path = f"{path_of(made)}/canary"
    read(await client.post(path, json={"percent": 50}))
    changed = {"graph": graph(node("c", "transform", output={}))}
    read(await client.patch(path_of(made), json=changed))
    third = read(await client.post(f"{path_of(made)}/publish", json={}))["publishedVersionId"]
    assert read(await client.get(path)) == {}
    assert set(await run(client, made, 8)) == {third}
    read(
        await client.patch(path_of(made), json={"graph": graph(node("d", "transform", output={}))})
    )
    started = read(await client.post(path, json={"percent": 50}))["canary"]
    assert started["control"]["versionId"] == third


async def test_an_invalid_canary_is_refused_and_nothing_is_published(
    client: Client, space: Space
) -> None:
    made = await drafted(client, space)
    path = f"{path_of(made)}/canary"
    for percent in (0, 100, -1, "5", None):
        answer = await client.post(path, json={"percent": percent})
        assert refusal(answer) == (400, "validation_error")
    other = await drafted(client, space)
    for body, expected in (
        ({"versionId": made["publishedVersionId"]}, (409, "conflict")),
        ({"versionId": other["publishedVersionId"]}, (400, "validation_error")),
        ({"versionId": str(space.id)}, (404, "not_found")),
        ({"expectedDraftVersionId": str(space.id)}, (409, "conflict")),
    ):
        assert refusal(await client.post(path, json={"percent": 5, **body})) == expected
    assert read(await client.get(path_of(made)))["publishedVersionId"] == made["publishedVersionId"]
    fresh = read(
        await client.post(
            f"{space.path}/automations",
            json={"label": "New", "graph": graph(node("a", "transform", output={}))},
        ),
        201,
    )
    answer = await client.post(f"{path_of(fresh)}/canary", json={"percent": 5})
    assert refusal(answer) == (409, "conflict")
    _, viewer = await space.member(Role.VIEWER)
    headers = {"Authorization": f"Bearer {viewer}"}
    assert read(await client.get(path, headers=headers)) == {}
    answer = await client.post(path, json={"percent": 5}, headers=headers)
    assert refusal(answer) == (403, "denied")


async def test_of_two_that_start_a_canary_one_does(client: Client, space: Space) -> None:
    made = await drafted(client, space)
    path = f"{path_of(made)}/canary"
    answers = await asyncio.gather(*(client.post(path, json={"percent": 5}) for _ in range(3)))
    assert sorted(one.status_code for one in answers) == [200, 409, 409]

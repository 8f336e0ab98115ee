"""Saved filters of runs: of one member or shared, and of nothing that a member does not see."""

import asyncio
from typing import Any

import pytest

from models.automation.saved_run_filters import FILTERS
from models.core.access.rules import Role
from tests.support.automations import create, read, refusal
from tests.support.client import Client
from tests.support.spaces import Space

FAILED = {"status": "failed", "errorCode": "declined"}


async def save(client: Client, space: Space, **body: Any) -> Any:
    content = {"label": "Declined", "query": FAILED, **body}
    return read(await client.post(f"{space.path}/run-filters", json=content), 201)


async def labels(client: Client, space: Space, token: str | None = None) -> list[str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    listed = read(await client.get(f"{space.path}/run-filters", headers=headers))
    return [one["label"] for one in listed["filters"]]


async def test_a_filter_is_saved_renamed_and_deleted(client: Client, space: Space) -> None:
    saved = await save(client, space)
    assert (saved["label"], saved["shared"], saved["query"]) == ("Declined", False, FAILED)
    path = f"{space.path}/run-filters/{saved['id']}"
    other = {"minSeconds": 2.5, "since": "2026-01-01T02:00:00+02:00"}
    changed = read(await client.patch(path, json={"label": "Slow", "query": other}))
    assert changed["query"] == {"minSeconds": 2.5, "since": "2026-01-01T00:00:00.000Z"}
    assert read(await client.get(f"{space.path}/automation-runs", params=changed["query"]))
    assert await labels(client, space) == ["Slow"]
    assert read(await client.patch(path, json={}))["label"] == "Slow"
    assert read(await client.delete(path)) == {"id": saved["id"]}
    assert refusal(await client.delete(path)) == (404, "not_found")
    assert await labels(client, space) == []


async def test_a_private_filter_is_there_for_its_member_alone(
    client: Client, space: Space, foreign: Space
) -> None:
    private = await save(client, space, label="Mine")
    shared = await save(client, space, label="Ours", shared=True)
    _, viewer = await space.member(Role.VIEWER)
    assert await labels(client, space) == ["Mine", "Ours"]
    assert await labels(client, space, viewer) == ["Ours"]
    headers = {"Authorization": f"Bearer {viewer}"}
    for one, expected in ((private, (404, "not_found")), (shared, (403, "denied"))):
        path = f"{space.path}/run-filters/{one['id']}"
        answer = await client.patch(path, headers=headers, json={"label": "Theirs"})
        assert refusal(answer) == expected
        assert refusal(await client.delete(path, headers=headers)) == expected
    own = {"label": "Theirs", "query": {}}
    path = f"{space.path}/run-filters"
    assert (await client.post(path, headers=headers, json=own)).status_code == 201
    answer = await client.post(path, headers=headers, json={**own, "shared": True})
    assert refusal(answer) == (403, "denied")
    assert await labels(client, space, viewer) == ["Ours", "Theirs"]
    assert await labels(client, space) == ["Mine", "Ours"]
    there = {"Authorization": f"Bearer {foreign.token}"}
    answer = await client.delete(f"{foreign.path}/run-filters/{shared['id']}", headers=there)
    assert refusal(answer) == (404, "not_found")


async def test_a_filter_names_an_automation_that_is_seen(
    client: Client, space: Space, foreign: Space
) -> None:
    made = await create(client, space)
    query = {"automationId": made["id"], "automationVersionId": made["draftVersionId"]}
    await save(client, space, query=query, shared=True)
    _, guest = await space.member(Role.GUEST)
    assert await labels(client, space, guest) == [], "it is closed to them"
    path = f"{space.path}/run-filters"
    for wrong, expected in (
        ({"automationId": str(foreign.id)}, (404, "not_found")),
        ({**query, "automationVersionId": made["id"]}, (404, "not_found")),
        ({"automationVersionId": made["draftVersionId"]}, (400, "validation_error")),
        ({"status": "gone"}, (400, "validation_error")),
        ({"cursor": "x"}, (400, "validation_error")),
        ({"text": "x" * 201}, (400, "validation_error")),
    ):
        answer = await client.post(path, json={"label": "Wrong", "query": wrong})
        assert refusal(answer) == expected, wrong
    assert len(await labels(client, space)) == 1


async def test_filters_are_bounded_and_go_with_their_member(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FILTERS.limit.most == 100
    monkeypatch.setattr(FILTERS.limit, "most", 2)
    user_id, token = await space.member(Role.EDITOR)
    headers = {"Authorization": f"Bearer {token}"}
    body = {"label": "Mine", "query": {}}
    answers = await asyncio.gather(
        *(client.post(f"{space.path}/run-filters", json=body, headers=headers) for _ in range(4))
    )
    assert sorted(one.status_code for one in answers) == [201, 201, 409, 409]
    await save(client, space)
    await space.remove(user_id)
    assert await labels(client, space) == ["Declined"]

"""Runs of actions over HTTP: who may ask for them, what is answered, and what is refused."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import func, select

from api.routers.automation import actions
from models.automation.action_runs.tables import action_run
from models.core.access.rules import Role, Scope
from tests.support.acting import acting
from tests.support.client import Client
from tests.support.items import Json, read, refused
from tests.support.patience import ENOUGH
from tests.support.spaces import Space

ECHO = {"output": {"got": {"type": "trigger", "value": "a"}}}


async def create(client: Client, space: Space, **body: Any) -> str:
    """Where a new action's operations are."""
    given = {"label": "Act", "kind": "transform", "config": ECHO, **body}
    made = read(await client.post(f"{space.path}/actions", json=given), 201)
    return f"{space.path}/actions/{made['id']}"


async def start(client: Client, path: str, **body: Any) -> Json:
    run: Json = read(await client.post(f"{path}/run", json={"wait": False, **body}))
    return run


@pytest_asyncio.fixture
async def worker(space: Space) -> AsyncIterator[None]:
    async with acting(space):
        yield


@pytest.mark.usefixtures("worker")
async def test_a_run_is_answered_with_its_end(client: Client, space: Space) -> None:
    path = await create(client, space)
    run = read(await client.post(f"{path}/run", json={"input": {"a": 1}}))
    assert (run["status"], run.get("result"), run.get("error")) == ("succeeded", {"got": 1}, None)
    assert (run["actionId"], run["workspaceId"], run["input"]) == (
        path.rpartition("/")[2],
        str(space.id),
        {"a": 1},
    )
    (step,) = run["stepResults"].values()
    assert step == run["stepResults"]["main"]
    assert (step["stepId"], step["index"], step["kind"]) == ("main", 0, "transform")
    assert (step["status"], step["result"]) == ("succeeded", {"got": 1})
    assert read(await client.get(f"{path}/runs/{run['id']}")) == run


async def test_a_run_that_takes_long_is_answered_as_it_stands(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "WAIT_SECONDS", 0.3)
    path = await create(client, space)
    began = time.monotonic()
    run = read(await client.post(f"{path}/run", json={}))
    assert time.monotonic() - began >= 0.3
    assert (run["status"], run.get("completedAt"), run.get("result")) == ("started", None, None)
    assert run["stepResults"]["main"]["status"] == "pending"


async def test_a_client_that_does_not_wait_is_answered_at_once(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "WAIT_SECONDS", 10 * ENOUGH)
    path = await create(client, space)
    async with asyncio.timeout(ENOUGH):
        assert (await start(client, path))["status"] == "started"


@pytest.mark.usefixtures("worker")
async def test_a_repeated_call_is_one_run(client: Client, space: Space) -> None:
    path = await create(client, space)
    headers = {"Idempotency-Key": uuid4().hex}
    answers = [await client.post(f"{path}/run", json={}, headers=headers) for _ in range(3)]
    assert len({answer.content for answer in answers}) == 1
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert len(read(await client.get(f"{path}/runs"))) == 1
    other = await client.post(f"{path}/run", json={"input": {"b": 1}}, headers=headers)
    assert refused(other) == (422, "conflicting_mutation")


async def test_a_disabled_action_is_a_validation_error(client: Client, space: Space) -> None:
    path = await create(client, space, enabled=False)
    answer = await client.post(f"{path}/run", json={})
    assert refused(answer) == (400, "validation_error")
    assert "disabled" in answer.json()["message"]
    assert read(await client.get(f"{path}/runs")) == []
    read(await client.patch(path, json={"enabled": True}))
    await start(client, path)


async def test_an_unknown_action_or_run_is_not_found(
    client: Client, space: Space, foreign: Space
) -> None:
    path, other = await create(client, space), await create(client, space, label="Other")
    run = await start(client, other)
    theirs = client.with_token(foreign.token)
    nowhere = f"{space.path}/actions/{uuid4()}"
    for answer in (
        await client.post(f"{nowhere}/run", json={}),
        await client.get(f"{nowhere}/runs"),
        await client.get(f"{path}/runs/{uuid4()}"),
        await client.get(f"{path}/runs/{run['id']}"),
        await client.post(f"{path}/runs/{run['id']}/cancel"),
        await theirs.get(f"{other}/runs/{run['id']}"),
        await theirs.post(f"{other}/run", json={}),
    ):
        assert refused(answer) == (404, "not_found")
    read(await client.delete(other))
    assert refused(await client.post(f"{other}/run", json={})) == (404, "not_found")


@pytest.mark.parametrize(
    "body",
    [{"input": []}, {"wait": "yes"}, {"inputs": {}}, [], {"input": None}],
    ids=["list", "text for a flag", "unknown key", "no object", "null"],
)
async def test_a_bad_body_is_refused(client: Client, space: Space, body: Any) -> None:
    path = await create(client, space)
    answer = await client.post(f"{path}/run", json=body)
    assert refused(answer) == (400, "validation_error")


async def test_runs_are_listed_newest_first(client: Client, space: Space) -> None:
    path = await create(client, space)
    runs = [(await start(client, path))["id"] for _ in range(35)][::-1]
    listed = read(await client.get(f"{path}/runs"))
    assert [run["id"] for run in listed] == runs[:30]
    for limit, shown in (("5", 5), ("1000", 35)):
        listed = read(await client.get(f"{path}/runs", params={"limit": limit}))
        assert [run["id"] for run in listed] == runs[:shown]
    assert listed[0]["stepResults"].keys() == {"main"}
    for limit in ("0", "x", "-1", "1.5", ""):
        answer = await client.get(f"{path}/runs", params={"limit": limit})
        assert refused(answer) == (400, "validation_error")


async def test_cancel_is_final_and_changes_nothing_twice(client: Client, space: Space) -> None:
    path = await create(client, space)
    run = await start(client, path)
    answers = await asyncio.gather(
        *(client.post(f"{path}/runs/{run['id']}/cancel") for _ in range(5))
    )
    assert len({answer.content for answer in answers}) == 1
    cancelled = read(answers[0])
    assert (cancelled["status"], cancelled["stepResults"]["main"]["status"]) == (
        "cancelled",
        "cancelled",
    )
    async with acting(space):
        await asyncio.sleep(0.1)
    assert read(await client.get(f"{path}/runs/{run['id']}")) == cancelled


async def test_action_runs_need_their_scopes_and_levels(client: Client, space: Space) -> None:
    path = await create(client, space)
    run = await start(client, path)
    reading = client.with_token(await space.key([Scope.ACTIONS_READ]))
    running = client.with_token(await space.key([Scope.ACTIONS_RUN]))
    assert read(await reading.get(f"{path}/runs"))[0]["id"] == run["id"]
    assert refused(await running.get(f"{path}/runs")) == (403, "denied")
    assert refused(await reading.post(f"{path}/run", json={})) == (403, "denied")
    assert (await start(running, path))["status"] == "started"
    _, token = await space.member(Role.COMMENTER)
    commenter = client.with_token(token)
    assert read(await commenter.get(f"{path}/runs"))
    assert refused(await commenter.post(f"{path}/run", json={})) == (403, "denied")


async def test_a_grant_to_run_is_enough(client: Client, space: Space) -> None:
    path = await create(client, space)
    item_id = read(await client.get(path))["itemId"]
    user_id, token = await space.member(Role.EDITOR)
    grants = [{"userId": str(user_id), "level": "run"}]
    body = {"accessMode": "restricted", "grants": grants}
    read(await client.put(f"/v1/items/{item_id}/access", json=body))
    editor = client.with_token(token)
    run = await start(editor, path)
    assert read(await editor.post(f"{path}/runs/{run['id']}/cancel"))["status"] == "cancelled"
    body["grants"] = [{"userId": str(user_id), "level": "view"}]
    read(await client.put(f"/v1/items/{item_id}/access", json=body))
    assert refused(await editor.post(f"{path}/run", json={})) == (403, "denied")
    assert read(await editor.get(f"{path}/runs"))


async def test_a_refused_call_leaves_no_run(client: Client, space: Space) -> None:
    path = await create(client, space, enabled=False)
    await client.post(f"{path}/run", json={})
    async with space.database.transaction() as work:
        statement = select(func.count()).select_from(action_run)
        assert await work.scalar(statement.where(action_run.c.workspace_id == space.id)) == 0

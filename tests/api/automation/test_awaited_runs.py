"""Callers who wait for the end of a run: `Prefer: wait` of those that start one, `wait` of reads.

No worker is there: the runs are ended here.
"""

import asyncio
import time
from typing import Any
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import select

from api.kernel import awaited_work
from models.automation.action_runs.execution import abandon as abandon_action_run
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.tables import action_run
from models.automation.automation_runs.execution import abandon
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.patience import ENOUGH, found_when
from tests.support.spaces import Space

Json = dict[str, Any]
WAIT = {"Prefer": "wait=60"}
STARTS: list[tuple[str, Json]] = [
    ("run", {}),
    ("test-run", {}),
    ("run-from-node", {"nodeId": "wait"}),
]


async def _open_run(space: Space, automation_id: str) -> UUID | None:
    """The one open run of an automation."""
    async with space.database.reading() as work:
        rows = await work.rows(
            select(automation_run.c.id).where(
                automation_run.c.automation_id == UUID(automation_id),
                automation_run.c.status == RunStatus.QUEUED,
            )
        )
    return rows[0].id if rows else None


async def _end(space: Space, made: Json) -> UUID:
    """End the run that a client starts now; its id."""
    run_id = await found_when(lambda: _open_run(space, made["id"]), bool)
    assert run_id is not None
    async with space.database.transaction() as work:
        assert await abandon(work, run_id, RunStatus.FAILED, "Enough.")
    return run_id


async def _answer(started: asyncio.Task[httpx2.Response]) -> httpx2.Response:
    return await asyncio.wait_for(started, ENOUGH)


@pytest.mark.parametrize(("operation", "body"), STARTS)
async def test_the_ended_run_is_the_answer_and_its_replay(
    client: Client, space: Space, operation: str, body: Json
) -> None:
    made = await publish(client, space)
    path, headers = f"{path_of(made)}/{operation}", {**WAIT, "Idempotency-Key": "k"}
    started = asyncio.create_task(client.post(path, json=body, headers=headers))
    run_id = await _end(space, made)
    answer = await _answer(started)
    assert answer.headers["Preference-Applied"] == "wait=60"
    run = read(answer)
    assert (run["id"], run["status"], run["error"]) == (str(run_id), "failed", "Enough.")
    again = await client.post(path, json=body, headers=headers)
    assert (again.content, again.headers["Idempotency-Replayed"]) == (answer.content, "true")


async def test_a_retry_is_waited_for(client: Client, space: Space) -> None:
    made = await publish(client, space)
    first = read(await client.post(f"{path_of(made)}/run", json={}))
    await _end(space, made)
    path = f"{path_of(made)}/runs/{first['id']}/retry"
    started = asyncio.create_task(client.post(path, json={"from": "start"}, headers=WAIT))
    run_id = await _end(space, made)
    run = read(await _answer(started))
    assert (run["id"], run["status"], run["replayOfRunId"]) == (str(run_id), "failed", first["id"])


async def test_a_repeated_call_joins_the_wait_of_the_first(client: Client, space: Space) -> None:
    made = await publish(client, space)
    path, headers = f"{path_of(made)}/run", {**WAIT, "Idempotency-Key": "k"}
    first = asyncio.create_task(client.post(path, json={}, headers=headers))
    await found_when(lambda: _open_run(space, made["id"]), bool)
    second = asyncio.create_task(client.post(path, json={}, headers=headers))
    await asyncio.sleep(0.2)
    await _end(space, made)
    answers = [await _answer(one) for one in (first, second)]
    assert len({answer.json()["data"]["id"] for answer in answers}) == 1
    listed = read(await client.get(f"{path_of(made)}/runs"))["runs"]
    assert len(listed) == 1


async def test_a_run_that_does_not_end_is_answered_as_it_is(client: Client, space: Space) -> None:
    made = await publish(client, space)
    before = time.monotonic()
    answer = await client.post(f"{path_of(made)}/run", json={}, headers={"Prefer": "wait=1"})
    assert time.monotonic() - before >= 0.9
    assert (read(answer)["status"], answer.headers["Preference-Applied"]) == ("queued", "wait=1")
    for ignored in ("wait=0", "wait=soon", "respond-async"):
        other = await client.post(f"{path_of(made)}/run", json={}, headers={"Prefer": ignored})
        assert read(other)["status"] == "queued"
        assert "Preference-Applied" not in other.headers


async def test_too_many_waits_of_a_workspace_are_answered_at_once(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaited_work, "MOST_PATIENT", 0)
    made = await publish(client, space)
    answer = await asyncio.wait_for(
        client.post(f"{path_of(made)}/run", json={}, headers=WAIT), ENOUGH
    )
    assert read(answer)["status"] == "queued"
    assert "Preference-Applied" not in answer.headers


async def test_a_read_waits_for_the_end_of_its_run(client: Client, space: Space) -> None:
    made = await publish(client, space)
    run = read(await client.post(f"{path_of(made)}/run", json={}))
    path = f"{path_of(made)}/runs/{run['id']}"
    reading = asyncio.create_task(client.get(path, params={"wait": "60"}))
    await asyncio.sleep(0.1)
    await _end(space, made)
    assert read(await _answer(reading))["status"] == "failed"
    at_once = await asyncio.wait_for(client.get(path, params={"wait": "60"}), ENOUGH)
    assert read(at_once)["status"] == "failed"
    assert (await client.get(path, params={"wait": "-1"})).status_code == 400


async def test_a_head_waits_for_nothing(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await publish(client, space)
    run = read(await client.post(f"{path_of(made)}/run", json={}))
    monkeypatch.delattr(awaited_work.AwaitedWork, "patient_wait")
    head = await client.head(f"{path_of(made)}/runs/{run['id']}", params={"wait": "60"})
    assert (head.status_code, head.content) == (200, b"")


async def test_an_action_run_is_waited_for(client: Client, space: Space) -> None:
    given = {"label": "Call", "kind": "http_request", "config": {"url": "https://api.example.test"}}
    action = read(await client.post(f"{space.path}/actions", json=given), 201)
    path = f"{space.path}/actions/{action['id']}"
    started = asyncio.create_task(client.post(f"{path}/run", json={"wait": False}, headers=WAIT))

    async def open_run() -> UUID | None:
        async with space.database.reading() as work:
            this = action_run.c.action_id == UUID(action["id"])
            run_id: UUID | None = await work.scalar(select(action_run.c.id).where(this))
        return run_id

    run_id = await found_when(open_run, bool)
    assert run_id is not None
    async with space.database.transaction() as work:
        await abandon_action_run(work, space.id, run_id, ActionRunStatus.FAILED)
    answer = await _answer(started)
    assert answer.headers["Preference-Applied"] == "wait=60"
    assert (read(answer)["id"], read(answer)["status"]) == (str(run_id), "failed")
    again = await client.get(f"{path}/runs/{run_id}", params={"wait": "60"})
    assert read(again)["status"] == "failed"


async def _batch(client: Client, space: Space, count: int) -> tuple[str, Json]:
    made = await publish(client, space)
    body = {"payloads": [{"n": number} for number in range(count)]}
    batch = read(await client.post(f"{path_of(made)}/runs/batch", json=body))
    return f"{path_of(made)}/runs/batches/{batch['id']}", batch


@pytest.mark.parametrize("backwards", [False, True])
async def test_a_batch_is_answered_when_all_of_its_runs_have_ended(
    client: Client, space: Space, backwards: bool
) -> None:
    path, batch = await _batch(client, space, 3)
    run_ids = [result["runId"] for result in batch["results"]]
    shown = read(await client.get(path))
    assert (shown["id"], shown["accepted"], shown["open"]) == (batch["id"], 3, 3)
    assert shown["runs"] == [{"runId": run_id, "status": "queued"} for run_id in run_ids]
    asked = asyncio.create_task(client.get(path, params={"wait": "60"}))
    for run_id in reversed(run_ids) if backwards else run_ids:
        done, _ = await asyncio.wait([asked], timeout=0.05)
        assert not done
        async with space.database.transaction() as work:
            assert await abandon(work, UUID(run_id), RunStatus.FAILED, "Enough.")
    shown = read(await _answer(asked))
    assert (shown["open"], shown["statuses"]) == (0, {"failed": 3})
    # An ended batch is not waited for.
    assert (
        read(await _answer(asyncio.create_task(client.get(path, params={"wait": "60"})))) == shown
    )


async def test_a_batch_is_answered_after_the_wait_as_it_is(client: Client, space: Space) -> None:
    path, batch = await _batch(client, space, 2)
    async with space.database.transaction() as work:
        await abandon(work, UUID(batch["results"][0]["runId"]), RunStatus.CANCELLED, "Enough.")
    shown = read(await client.get(path, params={"wait": "1"}))
    assert (shown["open"], shown["statuses"]) == (1, {"cancelled": 1, "queued": 1})


async def test_a_batch_that_is_none_or_of_another_automation_is_not_found(
    client: Client, space: Space, foreign: Space
) -> None:
    path, batch = await _batch(client, space, 1)
    other, _ = await _batch(client, space, 1)
    elsewhere = f"{other.rpartition('/')[0]}/{batch['id']}"
    assert (await client.get(elsewhere)).status_code == 404
    assert (await client.get(f"{path.rpartition('/')[0]}/{space.id}")).status_code == 404
    assert (await client.with_token(foreign.token).get(path)).status_code == 404

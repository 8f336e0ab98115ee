"""Pauses of automations and workspaces: the queue is kept in order, and starts after a resume."""

from typing import Any

import pytest

from models.core.pauses import rules
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.pauses import attend_once, released, resting, started
from tests.support.spaces import Space

Json = dict[str, Any]

RUNNING = {"state": "running", "resting": 0}


async def run(client: Client, made: Json, **body: Any) -> str:
    return str(read(await client.post(f"{path_of(made)}/run", json=body))["id"])


async def shown(client: Client, made: Json, run_id: str) -> Json:
    answer: Json = read(await client.get(f"{path_of(made)}/runs/{run_id}"))
    return answer


async def pause(client: Client, path: str, **body: Any) -> Json:
    answer: Json = read(await client.post(f"{path}/pause", json=body))
    return answer


async def resume(client: Client, path: str, **body: Any) -> Json:
    answer: Json = read(await client.post(f"{path}/resume", json=body))
    return answer


async def test_runs_of_a_paused_automation_rest_in_order_and_say_so(
    client: Client, space: Space
) -> None:
    made, other = [await publish(client, space) for _ in range(2)]
    begun = await pause(client, path_of(made), reason="The shop moves.")
    assert (begun["state"], begun["reason"], begun["resting"]) == ("paused", "The shop moves.", 0)
    runs = [await run(client, made) for _ in range(3)]
    free = await run(client, other)
    assert await resting(space.database, [*runs, free]) == runs
    assert await started(space.database, [*runs, free]) == [free]
    one = await shown(client, made, runs[1])
    waits = one["metadata"]["waitingFor"]
    assert (one["status"], waits["kind"], waits["subject"]) == ("queued", "paused", "automation")
    assert (waits["subjectId"], waits["reason"]) == (made["id"], "The shop moves.")
    listed = read(await client.get(f"{space.path}/automation-runs"))["runs"]
    waiting = {one["id"] for one in listed if "waitingFor" in one["metadata"]}
    assert waiting == set(runs)
    assert (await resume(client, path_of(made)))["state"] == "resuming"
    late = await run(client, made)
    await released(space.database, made["id"])
    assert await started(space.database, [*runs, late]) == [*runs, late]
    assert read(await client.get(f"{path_of(made)}/pause")) == RUNNING
    assert "waitingFor" not in (await shown(client, made, runs[1]))["metadata"]
    assert await started(space.database, [await run(client, made)])


async def test_starts_that_no_relay_has_claimed_rest_too(client: Client, space: Space) -> None:
    made = await publish(client, space)
    early = [await run(client, made) for _ in range(3)]
    await pause(client, path_of(made))
    late = await run(client, made)
    assert await started(space.database, early) == []
    assert await resting(space.database, [*early, late]) == [*early, late]


async def test_pause_and_resume_are_idempotent(client: Client, space: Space) -> None:
    made = await publish(client, space)
    first = await pause(client, path_of(made), reason="First.")
    assert await pause(client, path_of(made), reason="Second.") == first
    await run(client, made)
    resumed = await resume(client, path_of(made))
    again = await resume(client, path_of(made), rate=5)
    assert again == {**resumed, "rate": 5}
    await released(space.database, made["id"])
    assert await resume(client, path_of(made)) == RUNNING


async def test_a_pause_during_a_release_stops_it(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "chunk_of", lambda _: 2)
    made = await publish(client, space)
    await pause(client, path_of(made))
    runs = [await run(client, made) for _ in range(5)]
    await resume(client, path_of(made))
    await attend_once(space.database, made["id"])
    assert await started(space.database, runs) == runs[:2]
    await pause(client, path_of(made))
    await released(space.database, made["id"])
    assert await resting(space.database, runs) == runs, "what no relay has claimed rests again"
    await resume(client, path_of(made))
    await released(space.database, made["id"])
    assert await started(space.database, runs) == runs


async def test_a_rate_releases_a_second_of_it_at_a_time(client: Client, space: Space) -> None:
    made = await publish(client, space)
    await pause(client, path_of(made))
    runs = [await run(client, made) for _ in range(5)]
    await resume(client, path_of(made), rate=120)
    for count in (2, 4, 5):
        await attend_once(space.database, made["id"])
        assert await started(space.database, runs) == runs[:count]
        assert not await attend_once(space.database, made["id"], now=False)


async def test_a_paused_workspace_and_a_paused_automation_in_it(
    client: Client, space: Space
) -> None:
    made, other = [await publish(client, space) for _ in range(2)]
    await pause(client, space.path)
    first = [await run(client, made) for _ in range(2)]
    theirs = await run(client, other)
    await pause(client, path_of(made))
    second = await run(client, made)
    runs = [*first, second]
    await resume(client, space.path)
    await released(space.database, space.id)
    assert await started(space.database, [*runs, theirs]) == [theirs]
    waits = (await shown(client, made, first[0]))["metadata"]["waitingFor"]
    assert waits["subject"] == "automation"
    await pause(client, space.path)
    await resume(client, path_of(made))
    await released(space.database, made["id"])
    assert await started(space.database, runs) == []
    waits = (await shown(client, made, first[0]))["metadata"]["waitingFor"]
    assert waits["subject"] == "workspace"
    await resume(client, space.path)
    await released(space.database, space.id)
    assert await started(space.database, runs) == runs


async def test_resting_runs_are_cancelled_and_never_start(client: Client, space: Space) -> None:
    made = await publish(client, space)
    await pause(client, path_of(made))
    gone, kept = [await run(client, made) for _ in range(2)]
    read(await client.post(f"{path_of(made)}/runs/{gone}/cancel"))
    assert (await shown(client, made, gone))["status"] == "cancelled"
    await resume(client, path_of(made))
    await released(space.database, made["id"])
    assert await started(space.database, [gone, kept]) == [kept]


async def test_tests_are_not_held_up(client: Client, space: Space) -> None:
    made = await publish(client, space)
    await pause(client, path_of(made))
    tried = read(await client.post(f"{path_of(made)}/test-run", json={}))["id"]
    assert await started(space.database, [tried]) == [tried]

"""Operations over runs under a pause: what is retried rests, and what is cancelled never starts."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update

from models.automation.automation_runs.tables import automation_run
from models.automation.run_operations import rules
from runtime.clock import utc_now
from runtime.temporal import outbox
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.pauses import attend_once, released, resting, started
from tests.support.run_operations import carry_out, step
from tests.support.spaces import Space

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "chunk_of", lambda _: 2)


async def run(client: Client, made: Json) -> str:
    return str(read(await client.post(f"{path_of(made)}/run", json={}))["id"])


async def failed(client: Client, space: Space, made: Json, count: int) -> list[str]:
    run_ids = [await run(client, made) for _ in range(count)]
    async with space.database.transaction() as work:
        these = [UUID(run_id) for run_id in run_ids]
        await outbox.withdraw_starts(work, these)
        ends = {"status": "failed", "completed_at": utc_now(), "error": "It broke."}
        await work.execute(
            update(automation_run).where(automation_run.c.id.in_(these)).values(**ends)
        )
    return run_ids


async def accept(client: Client, space: Space, action: str, runs: list[str]) -> Json:
    body = {"action": action, "runIds": runs}
    made: Json = read(await client.post(f"{space.path}/run-operations", json=body), 202)
    return made


async def outcome(client: Client, space: Space, operation: Json) -> tuple[str, int]:
    shown = read(await client.get(f"{space.path}/run-operations/{operation['id']}"))
    return shown["status"], shown["succeeded"]


async def statuses(space: Space, run_ids: list[str]) -> set[str]:
    async with space.database.transaction() as work:
        these = automation_run.c.id.in_([UUID(one) for one in run_ids])
        rows = await work.rows(select(automation_run.c.status).where(these))
    return {row.status for row in rows}


async def retries_of(space: Space, run_ids: list[str]) -> list[str]:
    """The runs that repeat these, in the order of their acceptance."""
    run = automation_run.c
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(run.id)
            .where(run.replay_of_run_id.in_([UUID(one) for one in run_ids]))
            .order_by(run.created_at, run.id)
        )
    return [str(row.id) for row in rows]


async def until_started(client: Client, space: Space, operation: Json) -> None:
    """The transactions of an operation until it has treated its first runs."""
    while not read(await client.get(f"{space.path}/run-operations/{operation['id']}"))["done"]:
        await step(space.database, operation["id"])


async def test_a_pause_during_a_retry_keeps_all_of_it_at_rest(client: Client, space: Space) -> None:
    made = await publish(client, space)
    runs = await failed(client, space, made, 6)
    operation = await accept(client, space, "retry", runs)
    await until_started(client, space, operation)
    early = await retries_of(space, runs)
    assert await started(space.database, early) == early
    read(await client.post(f"{path_of(made)}/pause", json={}))
    await carry_out(space.database, operation)
    assert await outcome(client, space, operation) == ("succeeded", 6)
    retries = await retries_of(space, runs)
    assert len(retries) == 6
    assert await started(space.database, retries) == []
    assert sorted(await resting(space.database, retries)) == sorted(retries)
    read(await client.post(f"{path_of(made)}/resume", json={}))
    await released(space.database, made["id"])
    assert sorted(await started(space.database, retries)) == sorted(retries)


async def test_a_release_during_a_cancel_starts_none_of_those_cancelled(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    read(await client.post(f"{path_of(made)}/pause", json={}))
    runs = [await run(client, made) for _ in range(6)]
    operation = await accept(client, space, "cancel", runs)
    await until_started(client, space, operation)
    read(await client.post(f"{path_of(made)}/resume", json={}))
    await attend_once(space.database, made["id"])
    assert len(await started(space.database, runs)) == 4, "two were cancelled before"
    read(await client.post(f"{path_of(made)}/pause", json={}))
    await carry_out(space.database, operation)
    assert await outcome(client, space, operation) == ("succeeded", 6)
    assert await statuses(space, runs) == {"cancelled"}
    read(await client.post(f"{path_of(made)}/resume", json={}))
    await released(space.database, made["id"])
    assert await started(space.database, runs) == []
    assert await resting(space.database, runs) == []

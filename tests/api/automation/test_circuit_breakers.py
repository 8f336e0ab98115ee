"""Circuit breakers: failures in a row open one, a run tries again, and it closes itself."""

import asyncio
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, update

from models.automation.automation_runs import execution
from models.automation.automation_runs.rules import RunStatus
from models.automation.circuit_breakers import advance_breaker, circuit_breaker
from models.messages.notifications.queries import notification
from models.messages.workspace_events.log import workspace_event
from runtime.temporal import outbox
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.pauses import released, resting, started
from tests.support.spaces import Space

Json = dict[str, Any]


async def run(client: Client, made: Json) -> str:
    return str(read(await client.post(f"{path_of(made)}/run", json={}))["id"])


async def guarded(client: Client, space: Space, failures: int = 2) -> Json:
    made = await publish(client, space)
    body = {"failures": failures, "pauseSeconds": 60}
    shown = read(await client.put(f"{path_of(made)}/circuit-breaker", json=body))
    assert (shown["isOn"], shown["state"]) == (True, "closed")
    return made


async def end(space: Space, run_id: str, status: str = "failed") -> None:
    async with space.database.transaction() as work:
        await outbox.withdraw_starts(work, [UUID(run_id)])
        await execution.begin(work, UUID(run_id))
        await execution.finish(work, UUID(run_id), status=RunStatus(status), output=None)


async def breaker(client: Client, made: Json) -> Json:
    shown: Json = read(await client.get(f"{path_of(made)}/circuit-breaker"))
    return shown


async def after_its_time(space: Space, made: Json) -> None:
    """The next move of a breaker that has one before it."""
    this = circuit_breaker.c.automation_id == UUID(made["id"])
    async with space.database.transaction() as work:
        due = update(circuit_breaker).where(this, circuit_breaker.c.due_at.is_not(None))
        await work.execute(due.values(due_at=func.to_timestamp(0)))
    await advanced(space)


async def advanced(space: Space) -> None:
    """Move breakers that are due."""
    more = True
    while more:
        async with space.database.transaction() as work:
            more = await advance_breaker(work)


async def opened(client: Client, space: Space) -> Json:
    made = await guarded(client, space)
    for _ in range(2):
        await end(space, await run(client, made))
    assert (await breaker(client, made))["state"] == "open"
    return made


async def told(space: Space, made: Json) -> tuple[list[str], int]:
    """The events of a breaker, and the number of its notifications."""
    async with space.database.transaction() as work:
        events = await work.rows(
            select(workspace_event.c.type)
            .where(
                workspace_event.c.workspace_id == space.id,
                workspace_event.c.type.like("automation.breaker%"),
                workspace_event.c.data["automationId"].astext == made["id"],
            )
            .order_by(workspace_event.c.seq)
        )
        notices = select(func.count()).where(
            notification.c.workspace_id == space.id,
            notification.c.title.like("%circuit breaker%") | notification.c.title.like("%again"),
        )
        return [row.type.rpartition("_")[2] for row in events], int(await work.scalar(notices))


async def test_failures_in_a_row_open_it_and_a_success_starts_the_count_anew(
    client: Client, space: Space
) -> None:
    made = await guarded(client, space)
    for status in ("failed", "succeeded", "failed"):
        await end(space, await run(client, made), status)
    assert ((await breaker(client, made))["state"], await told(space, made)) == ("closed", ([], 0))
    await end(space, await run(client, made), "timed_out")
    assert (await breaker(client, made))["state"] == "open"
    waiting = await run(client, made)
    assert await resting(space.database, [waiting]) == [waiting]
    shown = read(await client.get(f"{path_of(made)}/runs/{waiting}"))["metadata"]["waitingFor"]
    assert (shown["cause"], shown["reason"]) == ("circuit_breaker", "2 runs failed in a row.")
    assert (await told(space, made))[0] == ["opened"]


async def test_tests_and_cancels_do_not_count(client: Client, space: Space) -> None:
    made = await guarded(client, space, failures=1)
    tried = read(await client.post(f"{path_of(made)}/test-run", json={}))["id"]
    await end(space, tried)
    await end(space, await run(client, made), "cancelled")
    assert (await breaker(client, made))["state"] == "closed"


async def test_one_run_tries_and_its_success_closes_it_and_starts_the_rest(
    client: Client, space: Space
) -> None:
    made = await opened(client, space)
    runs = [await run(client, made) for _ in range(3)]
    await after_its_time(space, made)
    shown = await breaker(client, made)
    assert (shown["state"], shown["trialRunId"], shown["resting"]) == ("half_open", runs[0], 2)
    assert await started(space.database, runs) == runs[:1]
    await after_its_time(space, made)
    assert await started(space.database, runs) == runs[:1], "one alone tries"
    await end(space, runs[0], "succeeded")
    await after_its_time(space, made)
    assert (await breaker(client, made))["state"] == "closed"
    await released(space.database, made["id"])
    assert await resting(space.database, runs) == []
    assert await started(space.database, runs[1:]) == runs[1:]
    assert (await told(space, made))[0] == ["opened", "closed"]


async def test_a_run_that_fails_again_opens_it_again(client: Client, space: Space) -> None:
    made = await opened(client, space)
    runs = [await run(client, made) for _ in range(2)]
    await after_its_time(space, made)
    await end(space, runs[0])
    await after_its_time(space, made)
    assert (await breaker(client, made))["state"] == "open"
    assert await resting(space.database, runs) == runs[1:]
    await after_its_time(space, made)
    assert (await breaker(client, made))["trialRunId"] == runs[1]


async def test_a_cancelled_trial_lets_the_next_run_try(client: Client, space: Space) -> None:
    made = await opened(client, space)
    runs = [await run(client, made) for _ in range(2)]
    await after_its_time(space, made)
    read(await client.post(f"{path_of(made)}/runs/{runs[0]}/cancel"))
    await after_its_time(space, made)
    shown = await breaker(client, made)
    assert (shown["state"], shown["trialRunId"]) == ("half_open", runs[1])


async def test_a_half_open_breaker_without_runs_takes_the_next_one(
    client: Client, space: Space
) -> None:
    made = await opened(client, space)
    await after_its_time(space, made)
    assert "trialRunId" not in await breaker(client, made)
    await advanced(space)
    assert "trialRunId" not in await breaker(client, made)
    late = await run(client, made)
    await advanced(space)
    assert (await breaker(client, made))["trialRunId"] == late, "it need not wait for its time"


async def test_a_resume_and_a_removal_close_it(client: Client, space: Space) -> None:
    for how in ("resume", "removal"):
        made = await opened(client, space)
        waiting = await run(client, made)
        if how == "resume":
            read(await client.post(f"{path_of(made)}/resume", json={}))
        else:
            read(await client.delete(f"{path_of(made)}/circuit-breaker"))
        assert (await breaker(client, made))["state"] == "closed"
        await released(space.database, made["id"])
        assert await started(space.database, [waiting]) == [waiting]


async def test_failures_at_the_same_time_are_counted_one_after_the_other(
    client: Client, space: Space
) -> None:
    made = await guarded(client, space, failures=6)
    runs = [await run(client, made) for _ in range(6)]
    await asyncio.gather(*(end(space, run_id) for run_id in runs))
    assert (await breaker(client, made))["state"] == "open"
    assert (await told(space, made))[0] == ["opened"]

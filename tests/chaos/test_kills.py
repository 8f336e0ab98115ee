"""kill -9 of each process of `workspace up` with work in flight."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator
from functools import partial
from operator import lt
from uuid import UUID

import pytest
import pytest_asyncio

from tests.chaos.caller import Caller
from tests.chaos.processes import Up, running_up
from tests.chaos.queries import fetch
from tests.chaos.rows import ROWS, in_stage
from tests.chaos.rows import judge as judge_rows
from tests.chaos.story import PATIENCE, ended, judge, story
from tests.support.engine import graph, node
from tests.support.patience import found_when, promised
from tests.support.sink import Sink
from workflows.policies import HEARTBEAT_TIMEOUT

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=40)]

log = logging.getLogger(__name__)

RUNS = 8
SEED = 20260718


@pytest_asyncio.fixture(scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Up]:
    async with running_up(tmp_path_factory.mktemp("up")) as up:
        yield up


@pytest_asyncio.fixture
async def caller(up: Up) -> AsyncIterator[Caller]:
    assert up.connection is not None
    caller = Caller(up.connection)
    yield caller
    await caller.close()


@pytest.mark.long
async def test_a_run_that_is_there_when_three_workers_are_killed_is_not_suspected(
    up: Up, caller: Caller
) -> None:
    loop = node("loop", "for_each", items=list(range(8)), parallelism=1)
    pause = node("pause", "delay", seconds=1)
    automation_id = await caller.publish(graph(loop, pause, edges=[("loop", "pause", "item")]))
    await caller.run(automation_id)
    [run_id] = caller.journal.values()

    async def items() -> int:
        query = "SELECT count(*) FROM node_run WHERE run_id = %s AND node_id = 'pause'"
        return int((await fetch(up.database_url, query, run_id))[0][0])

    begun, suspected = 0, []
    for _ in range(3):
        begun = await found_when(items, partial(lt, begun), "another item")
        pid = await up.kill("worker")
        await up.replaced("worker", pid)
        await up.working()
        query = "SELECT lost, quarantined_at FROM work_suspect WHERE id = %s"
        suspected += await fetch(up.database_url, query, run_id)
    assert begun < 8, "it was there when each of them was killed"
    assert await ended(up.database_url, UUID(automation_id), 1) == {"succeeded": 1}
    assert suspected == []


@pytest.mark.parametrize(
    "victim",
    [
        *(pytest.param(one, marks=pytest.mark.long) for one in ("api", "temporal")),
        "postgres",
        "worker",
    ],
)
async def test_a_killed_process_loses_and_doubles_nothing(
    up: Up, caller: Caller, sink: Sink, victim: str
) -> None:
    dice = random.Random(f"{SEED} {victim}")  # noqa: S311  # the same instant every time
    instant = dice.uniform(0.3, 2.0)
    log.warning("seed %s kills %s after %.2f s", SEED, victim, instant)
    database_id = await caller.create_database()
    automation_id = await caller.publish(story(database_id, sink))
    calling = asyncio.create_task(_call(caller, automation_id))
    await asyncio.sleep(instant)
    pid = await up.kill(victim)
    await calling
    assert caller.troubles or victim in {"temporal", "worker"}, "nobody noticed the death"
    await up.replaced(victim, pid)
    await ended(up.database_url, UUID(automation_id), RUNS)
    accepted = set(caller.journal.values())
    assert len(accepted) == RUNS
    await judge(up.database_url, UUID(automation_id), UUID(database_id), accepted, sink)


@pytest.mark.long
async def test_the_call_of_a_killed_worker_is_made_anew_once_it_counts_as_lost(
    up: Up, caller: Caller, sink: Sink
) -> None:
    call = node("call", "http_request", method="POST", url=sink.url("held"), retry=PATIENCE)
    automation_id = await caller.publish(graph(call))
    await caller.run(automation_id)
    await sink.arrived.wait()
    pid = await up.kill("worker")
    killed = time.monotonic()
    await up.replaced("worker", pid)
    await up.working()
    working = time.monotonic()
    assert await ended(up.database_url, UUID(automation_id), 1) == {"succeeded": 1}
    # How long the start of a process takes is the machine's, and no part of the promise.
    lost = killed + HEARTBEAT_TIMEOUT.total_seconds()
    assert sink.calls[1].at - max(lost, working) < promised(5)


@pytest.mark.long
async def test_postgresql_that_dies_while_rows_are_staged_and_applied_loses_and_doubles_none(
    up: Up, caller: Caller
) -> None:
    rows = [{"name": f"c{n}", "price": n} for n in range(ROWS)]
    # With a key rows are staged and compared, also where the database is new.
    content = {"label": "Rows", "kind": "inline", "keyFields": ["title"], "mode": "upsert"}
    accepted = asyncio.create_task(caller.bring_in(content, rows))
    for stage in ("stage", "apply"):
        await in_stage(up.database_url, stage)
        pid = await up.kill("postgres")
        await up.replaced("postgres", pid)
    # A quick restart goes unnoticed by the caller: its death is seen by its replacement.
    run_id = UUID((await accepted)["importId"])
    await judge_rows(up.database_url, run_id)


async def _call(caller: Caller, automation_id: str) -> None:
    """Runs at a steady pace, so that some are accepted before, while and after one is away."""
    async with asyncio.TaskGroup() as group:
        for _ in range(RUNS):
            group.create_task(caller.run(automation_id))
            await asyncio.sleep(0.3)

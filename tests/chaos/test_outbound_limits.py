"""Limits of outbound calls hold over all workers, and outlive the death of one."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from sqlalchemy import func, insert, select

from models.automation.automation_runs.tables import automation_run
from models.sources.outbound_limits.tables import outbound_call, outbound_place
from runtime.clock import utc_now
from runtime.ids import new_id
from tests.chaos.processes import Workers
from tests.support.endpoint import Endpoint, reply
from tests.support.engine import Engine, graph, node
from tests.support.patience import ENOUGH, eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=90)]

RUNS = 40
AT_ONCE = 3


@dataclass
class Crowd:
    """Counts the calls that a server answers at the same time."""

    now: int = 0
    most: int = 0
    callers: asyncio.Event = field(default_factory=asyncio.Event)
    endpoint: Endpoint = field(default_factory=lambda: Endpoint([]))

    async def answer(self, writer: asyncio.StreamWriter) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == AT_ONCE:
            self.callers.set()
        try:
            await asyncio.sleep(0.3)
        finally:
            self.now -= 1
        writer.write(reply(200))
        await writer.drain()


@pytest_asyncio.fixture
async def crowd() -> AsyncIterator[Crowd]:
    crowd = Crowd()
    crowd.endpoint.answers = [crowd.answer]
    server = await asyncio.start_server(crowd.endpoint.handle, "127.0.0.1", 0)
    crowd.endpoint.port = server.sockets[0].getsockname()[1]
    async with server:
        yield crowd


@pytest.mark.long
async def test_the_bound_holds_over_two_workers_and_the_death_of_one(
    idle: Engine, workers: Workers, crowd: Crowd
) -> None:
    async with idle.database.transaction() as work:
        await work.execute(
            insert(outbound_place).values(
                id=new_id(),
                workspace_id=idle.actor.workspace_id,
                host="127.0.0.1",
                at_once=AT_ONCE,
                created_at=utc_now(),
                updated_at=utc_now(),
            )
        )
    retry = {"maxAttempts": 5, "initialDelaySeconds": 1}
    call = node("call", "http_request", method="POST", url=crowd.endpoint.url) | {"retry": retry}
    calling = await idle.publish(graph(call))
    runs = [await idle.start(calling.id) for _ in range(RUNS)]
    doomed, survivor = [await workers.start() for _ in range(2)]
    await doomed.ready()
    await survivor.ready()
    await asyncio.wait_for(crowd.callers.wait(), ENOUGH)
    doomed.process.kill()
    run = automation_run.c

    async def all_ended() -> bool:
        async with idle.database.reading() as reading:
            succeeded = select(func.count()).where(run.id.in_(runs), run.status == "succeeded")
            return bool(await reading.scalar(succeeded) == RUNS)

    await eventually(all_ended, what="the ends of all runs")
    assert crowd.most == AT_ONCE
    calls = [one.headers["idempotency-key"] for one in crowd.endpoint.requests]
    repeated = [key for key, same in itertools.groupby(sorted(calls)) if len(list(same)) > 1]
    assert len(repeated) <= AT_ONCE, "only calls that were on their way are made again"
    async with idle.database.reading() as reading:
        assert await reading.scalar(select(func.count()).select_from(outbound_call)) == 0

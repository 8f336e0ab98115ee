"""A worker that no longer polls Temporal differs from an idle one."""

import asyncio

import pytest
import pytest_asyncio
from structlog.testing import capture_logs
from temporalio.client import Client

from cli.polling import CHECKS, SilentWorkerError, is_polled, require_polling
from runtime.temporal.workflow_kinds import Queue
from tests.support.engine import VERSION, Engine
from tests.support.patience import ENOUGH, eventually
from tests.support.temporal import dev_server

GROUP = VERSION.poller_group


@pytest_asyncio.fixture
async def polled(engine: Engine) -> Client:
    """A client whose workers have begun to poll."""

    async def on_every_queue() -> bool:
        return all([await is_polled(engine.client, queue, GROUP) for queue in Queue])

    await eventually(on_every_queue, what="the first polls")
    return engine.client


@pytest.mark.parametrize("queue", list(Queue))
async def test_a_worker_that_is_there_is_heard(polled: Client, queue: Queue) -> None:
    assert await is_polled(polled, queue, GROUP)
    assert not await is_polled(polled, queue, "workspace:another-build")


async def test_a_worker_that_polls_is_left_alone(polled: Client) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await require_polling(polled, list(Queue), GROUP, check_seconds=0.05)


async def test_a_worker_that_polls_no_more_is_ended(engine: Engine) -> None:
    address = engine.client.service_client.config.target_host
    silent = await Client.connect(address, identity="one that does not poll")
    async with asyncio.timeout(ENOUGH):
        with pytest.raises(SilentWorkerError, match="automation, io"):
            await require_polling(silent, [Queue.AUTOMATION, Queue.IO], GROUP, check_seconds=0.05)


@pytest.mark.long
async def test_a_server_that_is_away_says_nothing_about_its_workers() -> None:
    async with dev_server() as environment:
        address = environment.client.service_client.config.target_host
        client = await Client.connect(address)
    with capture_logs() as logs:
        watching = asyncio.create_task(
            require_polling(client, list(Queue), GROUP, check_seconds=0.05)
        )

        async def found_nothing_out() -> bool:
            told = [line["event"] for line in logs].count("Temporal did not say who polls")
            return told > CHECKS

        await eventually(found_nothing_out, what="a check too many")
    assert not watching.done()
    watching.cancel()

"""What a killed supervisor leaves is ended, and all is started anew, soon."""

import asyncio
import time
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from tests.chaos.caller import Caller
from tests.chaos.processes import Up, running_up
from tests.chaos.story import ended, judge, story
from tests.support.patience import eventually, promised
from tests.support.sink import Sink

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=30), pytest.mark.long]

RUNS = 8
ANSWERS_SECONDS = 8
"""After the start that takes over."""


@pytest.mark.parametrize("with_children", [False, True], ids=["supervisor", "everything"])
async def test_a_start_after_a_kill_loses_and_doubles_nothing_and_answers_soon(
    tmp_path: Path, sink: Sink, with_children: bool
) -> None:
    async with running_up(tmp_path) as up:
        assert up.connection is not None
        caller = Caller(up.connection)
        database_id = await caller.create_database()
        automation_id = await caller.publish(story(database_id, sink))
        for _ in range(RUNS):
            await caller.run(automation_id)
        killed = up.pid("api")
        await up.kill_supervisor(with_children=with_children)
        asking = asyncio.create_task(caller.run(automation_id))
        began = time.monotonic()
        starting = asyncio.create_task(up.start())
        await up.replaced("api", killed)
        await _answers(up)
        assert time.monotonic() - began < promised(ANSWERS_SECONDS)
        await starting
        await asking
        await ended(up.database_url, UUID(automation_id), RUNS + 1)
        accepted = set(caller.journal.values())
        await judge(up.database_url, UUID(automation_id), UUID(database_id), accepted, sink)
        await caller.close()


async def _answers(up: Up) -> None:
    url = f"http://127.0.0.1:{up.state.ports()['api']}/readyz"
    async with httpx2.AsyncClient(trust_env=False) as http:

        async def answers() -> bool:
            try:
                return (await http.get(url)).status_code == 200
            except httpx2.TransportError:
                return False

        await eventually(answers, what="an answer of the API")

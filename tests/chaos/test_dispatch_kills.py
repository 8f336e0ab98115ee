"""Dispatchers that die at the worst moments: every change is answered once."""

import asyncio
import signal
from pathlib import Path
from uuid import UUID

import pytest

from runtime.processes.fault_injection import FaultPoint
from tests.chaos.conftest import MakeDatabase
from tests.chaos.processes import Workers
from tests.chaos.queries import fetch
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.triggers import Listening

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=20), pytest.mark.long]

POINTS = (FaultPoint.DISPATCHED_BEFORE_COMMIT, FaultPoint.DISPATCHED_AFTER_COMMIT)
MOST = 300


async def test_a_death_around_the_commit_loses_and_doubles_no_run(
    idle: Engine, workers: Workers, new_database: MakeDatabase, url: str, tmp_path: Path
) -> None:
    goods = Listening(idle.database, idle.actor, await new_database(idle))
    echo = await new_database(idle)
    title = {"type": "trigger", "value": "record.title"}
    copying = graph(node("copy", "create_record", databaseId=str(echo), title=title))
    listener = await goods.automation("record_created", copying)
    doomed = [
        await workers.start(WORKSPACE_FAULT=point, WORKSPACE_FAULT_MARKS=str(tmp_path))
        for point in POINTS
    ]
    for worker in doomed:
        await worker.ready()
    made: set[str] = set()
    while any(worker.process.exit_code is None for worker in doomed):
        assert len(made) < MOST, "the dispatcher reached no point"
        made.add(str((await goods.create(f"{len(made):03}")).id))
        await asyncio.sleep(0.2)
    assert [await worker.ended() for worker in doomed] == [-signal.SIGKILL] * len(POINTS)
    for point in POINTS:
        UUID((tmp_path / point).read_text())

    await (await workers.start()).ready()

    async def all_copied() -> bool:
        copies = await fetch(url, "SELECT 1 FROM record WHERE database_id = %s", echo)
        return len(copies) >= len(made)

    await eventually(all_copied, what="the run of every record")
    await goods.quiet()
    told = [each["record"]["id"] for each in await goods.payloads(listener)]
    assert sorted(told) == sorted(made)
    titles = await fetch(url, "SELECT title FROM record WHERE database_id = %s", echo)
    assert sorted(title for (title,) in titles) == [f"{n:03}" for n in range(len(made))]

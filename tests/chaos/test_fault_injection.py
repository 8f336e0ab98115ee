"""Workers that die at the worst moments: all accepted runs end, with every effect once."""

import asyncio
import signal
from pathlib import Path
from uuid import UUID

import pytest

from runtime.processes.fault_injection import FaultPoint
from tests.chaos.conftest import MakeDatabase
from tests.chaos.processes import Worker, Workers
from tests.chaos.story import ended, judge, story
from tests.support.engine import Engine
from tests.support.sink import Sink

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=40), pytest.mark.long]

FIRST_RUNS = 6
MOST_RUNS = 240
POINTS = [
    FaultPoint.AFTER_COMMIT_BEFORE_START,
    FaultPoint.AFTER_START_BEFORE_MARK,
    FaultPoint.AFTER_EFFECT_BEFORE_COMPLETION,
    FaultPoint.AFTER_CALL_BEFORE_END,
    FaultPoint.BEFORE_TERMINAL_WRITE,
    FaultPoint.AFTER_TERMINAL_WRITE,
]
"""The points on the way of an automation run."""


async def test_a_death_at_every_named_point_loses_and_doubles_nothing(
    idle: Engine,
    workers: Workers,
    sink: Sink,
    new_database: MakeDatabase,
    url: str,
    tmp_path: Path,
) -> None:
    database_id = await new_database(idle)
    automation = await idle.publish(story(str(database_id), sink))
    doomed = [
        await workers.start(WORKSPACE_FAULT=point, WORKSPACE_FAULT_MARKS=str(tmp_path))
        for point in POINTS
    ]
    for worker in doomed:
        await worker.ready()
    accepted = [await idle.start(automation.id) for _ in range(FIRST_RUNS)]
    while any(worker.process.exit_code is None for worker in doomed):
        assert len(accepted) < MOST_RUNS, f"Never reached: {_unreached(tmp_path)}"
        accepted.append(await idle.start(automation.id))
        await asyncio.sleep(1)
    assert [await worker.ended() for worker in doomed] == [-signal.SIGKILL] * len(POINTS)
    assert _unreached(tmp_path) == []

    await _survivor(workers)
    await ended(url, automation.id, len(accepted))
    await judge(url, automation.id, database_id, accepted, sink)
    for point in POINTS:
        struck = UUID((tmp_path / point).read_text())
        assert (await idle.get(automation.id, struck)).status == "succeeded"


async def _survivor(workers: Workers) -> Worker:
    worker = await workers.start()
    await worker.ready()
    return worker


def _unreached(marks: Path) -> list[FaultPoint]:
    return [point for point in POINTS if not (marks / point).exists()]

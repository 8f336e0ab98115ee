"""A worker dies in the middle of a release: every resting run starts exactly once."""

import signal
from pathlib import Path

import pytest
from sqlalchemy import func, select

from models.automation.automation_runs.tables import automation_run
from models.core.pauses.intents import pause as pauses
from models.core.pauses.intents import resting_intent
from models.core.pauses.rules import CHUNK, PauseSubject
from runtime.processes.fault_injection import FaultPoint
from tests.chaos.processes import Workers
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.pauses import pause_work, resume_work

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60), pytest.mark.long]

RUNS = CHUNK + 50


async def test_every_resting_run_starts_once_though_the_worker_dies(
    idle: Engine, workers: Workers, tmp_path: Path
) -> None:
    made = await idle.publish(graph(node("a", "transform", output={"ok": True})))
    await pause_work(idle, PauseSubject.AUTOMATION, made.id)
    runs = [await idle.start(made.id) for _ in range(RUNS)]
    await resume_work(idle, PauseSubject.AUTOMATION, made.id)
    point = FaultPoint.AFTER_RELEASE_BEFORE_COMMIT
    doomed = await workers.start(WORKSPACE_FAULT=point, WORKSPACE_FAULT_MARKS=str(tmp_path))
    assert await doomed.ended() == -signal.SIGKILL
    async with idle.database.transaction() as work:
        rest = select(func.count()).select_from(resting_intent)
        assert await work.scalar(rest) == RUNS, "nothing of it was committed"
    survivor = await workers.start()
    await survivor.ready()
    run = automation_run.c

    async def all_ended() -> bool:
        async with idle.database.transaction() as work:
            succeeded = select(func.count()).where(
                run.id.in_(runs), run.status == "succeeded", run.started_at.is_not(None)
            )
            return bool(await work.scalar(succeeded) == RUNS)

    await eventually(all_ended, what="the ends of all runs")
    async with idle.database.transaction() as work:
        every = select(func.count()).where(run.automation_id == made.id)
        assert await work.scalar(every) == RUNS
        assert await work.first(select(pauses.c.id)) is None

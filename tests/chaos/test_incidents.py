"""A worker dies in the middle of grouping failures: every failed run is counted exactly once."""

import signal
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import func, select
from temporalio.client import WorkflowHandle

from models.automation.incidents.tables import incident_run, ungrouped_failure
from runtime.processes.fault_injection import FaultPoint
from runtime.temporal.workflow_kinds import Queue
from tests.chaos.processes import Workers
from tests.support.ageing import make_automation
from tests.support.engine import KEYS, Engine
from tests.support.incidents import failed_run, incident_of
from tests.support.spaces import make_space
from workflows.schedules import Maintenance

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60)]

RUNS = 40


async def sweep(engine: Engine) -> WorkflowHandle[Maintenance, dict[str, int]]:
    """Begin a sweep of maintenance, beside those of the schedule."""
    return await engine.client.start_workflow(
        Maintenance.run, id=f"sweep-{uuid4()}", task_queue=Queue.AUTOMATION
    )


@pytest.mark.long
async def test_every_failure_is_counted_once_though_the_worker_dies(
    idle: Engine, workers: Workers, tmp_path: Path
) -> None:
    space = await make_space(idle.database, KEYS)
    version = await make_automation(space)
    run_ids = [await failed_run(space, version, f"Order {n} fell.") for n in range(RUNS)]
    notes = select(func.count()).where(ungrouped_failure.c.workspace_id == space.id)
    point = FaultPoint.AFTER_GROUPING_BEFORE_COMMIT
    doomed = await workers.start(WORKSPACE_FAULT=point, WORKSPACE_FAULT_MARKS=str(tmp_path))
    # It may die before it is seen to be ready, within a sweep of the schedule.
    await sweep(idle)
    assert await doomed.ended() == -signal.SIGKILL
    async with idle.database.transaction() as work:
        assert await work.scalar(notes) == RUNS, "nothing of it was committed"
    survivor = await workers.start()
    await survivor.ready()
    await (await sweep(idle)).result()
    row = await incident_of(idle.database, run_ids[0])
    assert (row.runs, row.openings) == (RUNS, 1)
    async with idle.database.transaction() as work:
        assert await work.scalar(notes) == 0
        kept = select(incident_run.c.run_id).where(incident_run.c.incident_id == row.id)
        assert {one.run_id for one in await work.rows(kept)} == set(run_ids)

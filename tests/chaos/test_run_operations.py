"""A worker dies in the middle of a bulk retry: every run is retried exactly once."""

import signal
from functools import partial
from pathlib import Path

import pytest

from models.automation.run_operations.rules import CHUNK
from runtime.processes.fault_injection import FaultPoint
from tests.chaos.processes import Workers
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.run_operations import (
    accept,
    detail,
    ended,
    failed_runs,
    has_no_waiting_starts,
    replays,
)

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=30), pytest.mark.long]

RUNS = 600


@pytest.mark.parametrize(
    "point", [FaultPoint.AFTER_RUNS_BEFORE_COMMIT, FaultPoint.AFTER_CHUNK_BEFORE_REPLY]
)
async def test_every_run_is_retried_once_whenever_the_worker_dies(
    idle: Engine, workers: Workers, tmp_path: Path, point: FaultPoint
) -> None:
    automation = await idle.publish(graph(node("a", "transform", output={"ok": True})))
    runs = await failed_runs(idle, automation.id, RUNS)
    before = await replays(idle)
    operation_id = await accept(idle, "retry", runIds=[str(run_id) for run_id in runs])
    doomed = await workers.start(WORKSPACE_FAULT=point, WORKSPACE_FAULT_MARKS=str(tmp_path))
    assert await doomed.ended() == -signal.SIGKILL
    kept = (await detail(idle, operation_id)).done
    assert kept == (0 if point is FaultPoint.AFTER_RUNS_BEFORE_COMMIT else CHUNK)
    survivor = await workers.start()
    await survivor.ready()
    shown = await ended(idle, operation_id)
    assert (shown.status, shown.total, shown.succeeded) == ("succeeded", RUNS, RUNS)
    retried = await replays(idle) - before
    assert dict(retried) == dict.fromkeys(runs, 1)
    # An operation that finds them waiting would wait for room before its first chunk.
    await eventually(partial(has_no_waiting_starts, idle), "the delivery of the starts")

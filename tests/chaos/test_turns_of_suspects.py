"""Work that is suspected waits for its turn, and loses nothing by that."""

from collections import Counter

import pytest
from sqlalchemy import insert

from models.core.base import Id
from models.core.lifecycle.lost_workers import work_suspect
from tests.chaos.processes import Workers
from tests.support.engine import Engine, graph, node
from tests.support.sink import Sink

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=40), pytest.mark.long]

LONG_TURNS = """
import activities.suspects
activities.suspects.ALONE_SECONDS = 600
"""
SLOW_START = """
import asyncio
from cli.quarantine import process
started = process.asyncio.create_subprocess_exec
async def late(*command, **options):
    await asyncio.sleep(8)
    return await started(*command, **options)
process.asyncio.create_subprocess_exec = late
"""


async def test_a_node_that_waits_for_its_turn_keeps_its_attempt_and_its_time(
    idle: Engine, workers: Workers, sink: Sink
) -> None:
    """Beside it a call takes long, and with it the turn; nodes begin in the order of their ids."""
    retry = {"maxAttempts": 2, "initialDelaySeconds": 0.1}
    url = sink.url("held")
    held = node("a", "http_request", method="POST", url=url, timeoutSeconds=10, retry=retry)
    automation = await idle.publish(graph(held, _call(sink)))
    run_id = await idle.start(automation.id)
    await _suspect(idle, run_id, 1)
    await workers.start(prepared=LONG_TURNS)
    assert (await idle.ended(automation.id, run_id)).status == "succeeded"
    assert Counter(call.node_id for call in sink.calls) == {"a": 2, "b": 1}


async def test_a_node_that_waits_for_its_quarantine_to_start_keeps_its_attempt_and_its_time(
    idle: Engine, workers: Workers, sink: Sink
) -> None:
    automation = await idle.publish(graph(_call(sink)))
    run_id = await idle.start(automation.id)
    await _suspect(idle, run_id, 3)
    await workers.start(prepared=SLOW_START)
    assert (await idle.ended(automation.id, run_id)).status == "succeeded"
    assert len(sink.of_run(run_id)) == 1


def _call(sink: Sink) -> dict[str, object]:
    return node("b", "http_request", method="POST", url=sink.url("ok"), timeoutSeconds=2)


async def _suspect(engine: Engine, run_id: Id, lost: int) -> None:
    async with engine.database.transaction() as work:
        row = {"id": run_id, "lost": lost, "suspected_at": work.now}
        await work.execute(insert(work_suspect).values(row))

"""A worker that is asked to stop ends what it has begun."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from activities.outbox.relay import ExecutionDeliveries, Relay, RunStarts
from cli.work_handlers.registry import ROUTES
from models.core.base import Id
from models.workspace.legacy_imports import commands
from models.workspace.legacy_imports.queries import ApproveLegacyImport
from runtime.object_store import ObjectStore
from runtime.temporal.workflow_kinds import Queue
from tests.chaos.conftest import MakeDatabase
from tests.chaos.processes import Workers
from tests.chaos.queries import fetch
from tests.chaos.story import ended
from tests.support.engine import Engine, Json, graph, node
from tests.support.legacy_import_stories import accept, small, until
from tests.support.patience import ENOUGH, eventually
from tests.support.sink import Sink

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=40)]

RUNS = 5
IGNORED_SIGNAL = """
from functools import partial
import cli.polling, cli.worker_process
async def is_polled(*_): return False
cli.polling.is_polled = is_polled
cli.worker_process.require_polling = partial(cli.polling.require_polling, check_seconds=0.2)
"""
"""A worker of which Temporal knows nothing, as if its polls had died."""

WITHOUT_RELAY = """
from activities.outbox.relay import Relay
async def run(self): raise MemoryError("no room for the relay")
Relay.run = run
"""

WITHOUT_ACTIVITIES = """
from datetime import timedelta
import cli.worker_process
from temporalio.worker._activity import _ActivityWorker
whole = _ActivityWorker.run
async def run(self):
    if self._task_queue == "automation":
        await self._bridge_worker().poll_activity_task()
        raise RuntimeError("no way to hear of activities")
    await whole(self)
_ActivityWorker.run = run
cli.worker_process.shutdown.DRAIN_SECONDS = 2
cli.worker_process.GRACE = timedelta(seconds=2)
"""

STUCK = """
import asyncio
import cli.worker_process
from cli.quarantine.process import QuarantineProcess
cli.worker_process.shutdown.DRAIN_SECONDS = 1
QuarantineProcess.close = lambda self: asyncio.sleep(600)
"""

STUCK_AT_START = (
    STUCK
    + """
async def ensure_schedule(*_): raise RuntimeError("no schedules")
cli.worker_process.handler_registry.ensure_schedule = ensure_schedule
"""
)


@pytest.mark.long
async def test_a_relay_that_is_woken_as_it_is_stopped_stops(idle: Engine) -> None:
    deliveries = ExecutionDeliveries(idle.client, ROUTES).by_intent()
    relay = Relay(idle.database, deliveries, RunStarts())
    running = asyncio.create_task(relay.run())
    await asyncio.sleep(0.5)
    relay.wake()
    running.cancel()
    done, _ = await asyncio.wait({running}, timeout=ENOUGH)
    running.cancel()
    assert done == {running}


def call_and_note(sink: Sink, database_id: Id) -> Json:
    """A call that is answered slowly, and a record of its end."""
    retry = {"maxAttempts": 3, "initialDelaySeconds": 0.1}
    return graph(
        node("call", "http_request", method="POST", url=sink.url("slow"), retry=retry),
        node("note", "create_record", databaseId=str(database_id), title="done"),
        edges=[("call", "note")],
    )


@pytest.mark.long
async def test_a_stopping_worker_finishes_its_calls_and_hands_over_what_waits(
    idle: Engine,
    workers: Workers,
    sink: Sink,
    new_database: MakeDatabase,
    url: str,
    tmp_path: Path,
) -> None:
    """What waits is a legacy import, for its review."""
    store = (tmp_path / "objects").as_uri()
    engine = replace(idle, store=ObjectStore(store))
    database_id = await new_database(idle)
    automation = await idle.publish(call_and_note(sink, database_id))
    first = await workers.start(WORKSPACE_OBJECT_STORE=store)
    await first.ready()
    waiting = await accept(engine, await small(engine))
    await until(engine, waiting, "awaiting_review")
    for _ in range(RUNS):
        await idle.start(automation.id)

    async def all_called() -> bool:
        return len(sink.calls) == RUNS

    await eventually(all_called, what="a call of every run")
    first.process.terminate()
    assert await first.ended() == 0
    assert "worker is draining" in first.log()
    answered = await fetch(url, "SELECT status, attempt FROM node_run WHERE node_id = 'call'")
    assert answered == [("succeeded", 1)] * RUNS

    await workers.start(WORKSPACE_OBJECT_STORE=store)
    async with idle.database.transaction() as work:
        await commands.approve(work, idle.actor.principal, waiting, ApproveLegacyImport())
        await commands.start(work, waiting)
    assert await ended(url, automation.id, RUNS) == {"succeeded": RUNS}
    assert set(sink.counts().values()) == {1}
    titles = await fetch(url, "SELECT title FROM record WHERE database_id = %s", database_id)
    assert titles == [("done",)] * RUNS
    await until(engine, waiting, "completed")


@pytest.mark.long
async def test_a_worker_that_is_asked_to_stop_and_cut_off_has_ended_in_order(
    workers: Workers,
) -> None:
    worker = await workers.start(prepared=STUCK)
    await worker.ready()
    worker.process.terminate()
    assert await worker.ended() == 0, "no work is suspected of its end"


@pytest.mark.long
async def test_a_worker_that_fails_before_it_is_ready_ends(workers: Workers) -> None:
    worker = await workers.start(prepared=STUCK_AT_START)
    assert await worker.ended() == 1


@pytest.mark.long
async def test_a_worker_that_is_not_heard_ends_so_that_it_is_replaced(workers: Workers) -> None:
    worker = await workers.start(prepared=IGNORED_SIGNAL)
    assert await worker.ended() == 1
    assert "worker is ready" in worker.log()
    queues = ", ".join(Queue)
    assert f"Temporal no longer hears from this worker on: {queues}." in worker.log()
    assert "Traceback" not in worker.log()


@pytest.mark.long
async def test_a_worker_whose_relay_has_failed_ends_so_that_it_is_replaced(
    workers: Workers,
) -> None:
    worker = await workers.start(prepared=WITHOUT_RELAY)
    assert await worker.ended() == 1
    assert "no room for the relay" in worker.log()


@pytest.mark.long
async def test_a_worker_that_is_cut_off_has_told_why_it_ends(workers: Workers) -> None:
    worker = await workers.start(prepared=STUCK + WITHOUT_RELAY)
    assert await worker.ended() == 1
    assert "no room for the relay" in worker.log()


@pytest.mark.long
async def test_a_worker_that_has_failed_ends_although_workflow_tasks_wait_for_its_activities(
    idle: Engine, workers: Workers
) -> None:
    automation = await idle.publish(graph(node("only", "transform", output={"done": True})))
    await idle.start(automation.id)
    worker = await workers.start(prepared=WITHOUT_ACTIVITIES)
    assert await worker.ended() == 1
    assert "no way to hear of activities" in worker.log()

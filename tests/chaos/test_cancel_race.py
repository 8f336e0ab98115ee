"""Cancel against completion, many times at random instants (architecture.md#cancel-wins)."""

import asyncio
import logging
import random
import time
from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from models.automation.automation_runs import commands as runs
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automation_runs.tables import automation_run, node_run
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.chaos.conftest import MakeDatabase
from tests.support.engine import Engine, Json, graph, node
from tests.support.exploring import examples
from tests.support.patience import ENOUGH, eventually
from tests.support.sink import Sink

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=20)]

log = logging.getLogger(__name__)

RACES = examples(80, explored=1_000)
SIDE_BY_SIDE = 20
SEED = 20260719
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run, its node runs and its records."""

    run: Row
    nodes: list[Row]
    records: list[Row]

    @property
    def status(self) -> str:
        return str(self.run[0])

    @property
    def completed_at(self) -> Any:
        return self.run[1]


@pytest.mark.long
async def test_nothing_starts_after_a_cancel(
    engine: Engine, sink: Sink, new_database: MakeDatabase
) -> None:
    database_id = await new_database(engine)
    automation = await engine.publish(_race(str(database_id), sink))
    dice = random.Random(SEED)  # noqa: S311  # the same instants every time
    turns = asyncio.Semaphore(SIDE_BY_SIDE)

    async def race(wait: float) -> tuple[UUID, Snapshot]:
        async with turns:
            run_id = await engine.start(automation.id)
            await asyncio.sleep(wait)
            return run_id, await _cancel(engine, automation.id, run_id)

    # Of several, so that a machine that stood still for a moment does not count as slow.
    usual = median([await _usual_seconds(engine, automation.id) for _ in range(3)])
    log.warning("seed %s, a run takes %.2f s", SEED, usual)
    cancelled = await asyncio.gather(*(race(dice.uniform(0, 2 * usual)) for _ in range(RACES)))
    for run_id, _ in cancelled:
        await _execution_ended(engine, run_id)
    for run_id, before in cancelled:
        async with engine.database.transaction() as work:
            after = await _snapshot(work, run_id)
        assert after == before
        assert before.status in {"cancelled", "succeeded"}
        assert all(started <= before.completed_at for *_, started, _ in before.nodes if started)
        _check_calls(before, sink, run_id)
    outcomes = Counter(before.status for _, before in cancelled)
    # Each way of the race must have been taken, else it proves nothing.
    assert min(outcomes["cancelled"], outcomes["succeeded"]) > 0, outcomes


async def _usual_seconds(engine: Engine, automation_id: UUID) -> float:
    """How long a run takes on this machine, now, among as many as will race."""
    started = time.monotonic()
    run_ids = [await engine.start(automation_id) for _ in range(SIDE_BY_SIDE)]
    for run_id in run_ids:
        await engine.ended(automation_id, run_id)
    return time.monotonic() - started


def _race(database_id: str, sink: Sink) -> Json:
    call = {"method": "POST", "url": sink.url("ok"), "timeoutSeconds": ENOUGH}
    return graph(
        node("before", "create_record", databaseId=database_id, title="before"),
        {"id": "call", "kind": "http_request", "config": call},
        node("beside", "create_record", databaseId=database_id, title="beside"),
        node("pause", "delay", seconds=0.1),
        node("after", "create_record", databaseId=database_id, title="after"),
        edges=[("before", "call"), ("before", "beside"), ("call", "pause"), ("pause", "after")],
    )


async def _cancel(engine: Engine, automation_id: UUID, run_id: UUID) -> Snapshot:
    """Cancel, and what its transaction saw: the row's lock keeps every writer out meanwhile."""
    async with engine.database.transaction() as work:
        shown = await runs.cancel(work, engine.actor, automation_id, run_id)
        snapshot = await _snapshot(work, run_id)
    assert shown.status == snapshot.status
    assert shown.status not in OPEN_RUN
    return snapshot


async def _snapshot(work: UnitOfWork, run_id: UUID) -> Snapshot:
    run = await work.first(
        select(automation_run.c.status, automation_run.c.completed_at).where(
            automation_run.c.id == run_id
        )
    )
    node = node_run.c
    nodes = await work.rows(
        select(node.node_id, node.status, node.attempt, node.started_at, node.completed_at)
        .where(node.run_id == run_id)
        .order_by(node.node_id)
    )
    outputs = await work.rows(select(node.output).where(node.run_id == run_id))
    made = [one.output["record"]["id"] for one in outputs if "record" in (one.output or {})]
    records = await work.rows(select(record.c.id).where(record.c.id.in_(made)).order_by("id"))
    assert run is not None
    assert len(records) == len(made)
    return Snapshot(tuple(run), [tuple(row) for row in nodes], [tuple(row) for row in records])


def _check_calls(before: Snapshot, sink: Sink, run_id: UUID) -> None:
    """A foreign server hears only of nodes that had started, once per attempt they show."""
    attempts = {name: attempt for name, _, attempt, *_ in before.nodes}
    calls = Counter(call.node_id for call in sink.of_run(run_id))
    assert all(count <= attempts.get(name, 0) for name, count in calls.items())


async def _execution_ended(engine: Engine, run_id: UUID) -> None:
    """Wait until nothing of the run is under way, if anything ever was."""
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))

    async def has_ended() -> bool:
        return await _status(handle) is not WorkflowExecutionStatus.RUNNING

    await eventually(has_ended, what=f"the end of {handle.id}")


async def _status(handle: Any) -> WorkflowExecutionStatus | None:
    try:
        return (await handle.describe()).status
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise

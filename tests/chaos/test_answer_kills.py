"""A worker dies in the middle of a bulk replay or a bulk undo: each is done exactly once."""

import signal
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import func, select

from models.automation.automation_runs.run_header import automation_actor
from models.automation.automation_runs.tables import automation_run
from models.automation.inbox.rules import EventOutcome, EventSource, Judgement, Received
from models.automation.inbox.store import inbox_outcome, keep
from models.automation.run_operations.rules import CHUNK
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.record_changes.history import record_change
from models.data.records.commands import create_record, update_record
from models.data.records.queries import get_record
from models.data.records.shapes import CreateRecord, UpdateRecord
from runtime.ids import new_id
from runtime.processes.fault_injection import FaultPoint
from tests.chaos.processes import Workers
from tests.support.engine import Engine, graph, node
from tests.support.run_operations import accept, detail, ended, failed_runs

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60), pytest.mark.long]

COUNT = CHUNK + 50
POINTS = [FaultPoint.AFTER_RUNS_BEFORE_COMMIT, FaultPoint.AFTER_CHUNK_BEFORE_REPLY]


async def survived(
    engine: Engine, workers: Workers, marks: Path, operation_id: UUID, point: FaultPoint
) -> None:
    """Let a worker die at a point of the operation, and another one end it."""
    fault = {"WORKSPACE_FAULT": point.value, "WORKSPACE_FAULT_MARKS": str(marks)}
    doomed = await workers.start(**fault)
    assert await doomed.ended() == -signal.SIGKILL
    done = (await detail(engine, operation_id)).done
    assert done in {0, CHUNK}
    survivor = await workers.start()
    await survivor.ready()
    shown = await ended(engine, operation_id)
    assert (shown.status, shown.total, shown.succeeded) == ("succeeded", COUNT, COUNT)


async def filtered_events(engine: Engine, automation_id: UUID) -> set[UUID]:
    """Events of a webhook that its filter did not let start a run."""
    event_ids = {new_id() for _ in range(COUNT)}
    outcomes = {automation_id: Judgement(EventOutcome.FILTERED)}
    place = engine.actor.workspace_id
    async with engine.database.transaction() as work:
        for event_id in event_ids:
            event = Received(event_id, place, EventSource.WEBHOOK, automation_id, {"body": {}})
            await keep(work, event, outcomes)
    return event_ids


@pytest.mark.parametrize("point", POINTS)
async def test_every_event_is_replayed_once_whenever_the_worker_dies(
    idle: Engine, workers: Workers, tmp_path: Path, point: FaultPoint
) -> None:
    automation = await idle.publish(graph(node("a", "transform", output={"ok": True})))
    event_ids = await filtered_events(idle, automation.id)
    wanted = {"automationId": str(automation.id), "filter": {"outcome": "filtered"}}
    operation_id = await accept(idle, "replay", replay=wanted)
    await survived(idle, workers, tmp_path, operation_id, point)
    run, outcome = automation_run.c, inbox_outcome.c
    async with idle.database.transaction() as work:
        of_automation = run.automation_id == automation.id
        runs = select(func.count()).select_from(automation_run).where(of_automation)
        assert await work.scalar(runs) == COUNT
        replayed = select(outcome.event_id).where(
            outcome.automation_id == automation.id, outcome.replay
        )
        rows = [row.event_id for row in await work.rows(replayed)]
    assert (len(rows), set(rows)) == (COUNT, event_ids)


@pytest.mark.parametrize("point", POINTS)
async def test_every_run_is_undone_once_whenever_the_worker_dies(
    idle: Engine, workers: Workers, tmp_path: Path, point: FaultPoint
) -> None:
    automation = await idle.publish(graph(node("a", "transform", output={"ok": True})))
    run_ids = await failed_runs(idle, automation.id, COUNT)
    records = await written_records(idle, automation.id, run_ids)
    operation_id = await accept(idle, "undo", runIds=[str(one) for one in run_ids])
    await survived(idle, workers, tmp_path, operation_id, point)
    change = record_change.c
    async with idle.database.transaction() as work:
        reverts = await work.rows(
            select(change.record_id, func.count().label("times"))
            .where(change.record_id.in_(records), change.undo_id.is_not(None))
            .group_by(change.record_id)
        )
        titles = {(await get_record(work, idle.actor, one)).title for one in records}
    assert {row.record_id: row.times for row in reverts} == dict.fromkeys(records, 1)
    assert titles == {"before"}


async def written_records(engine: Engine, automation_id: UUID, run_ids: list[UUID]) -> list[UUID]:
    """A record for each of the runs, which the run has changed."""
    async with engine.database.transaction() as work:
        body = CreateDatabase.model_validate({"label": "Written", "fields": []})
        database = await create_database(work, engine.actor, body)
        content = CreateRecord.model_validate({"title": "before"})
        records = [
            (await create_record(work, engine.actor, database.id, content)).id for _ in run_ids
        ]
    async with engine.database.transaction() as work:
        changed = UpdateRecord.model_validate({"title": "after"})
        for run_id, record_id in zip(run_ids, records, strict=True):
            actor = automation_actor(engine.actor.workspace_id, automation_id, run_chain=(run_id,))
            await update_record(work, actor, record_id, changed)
    return records

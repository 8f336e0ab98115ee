"""Countdowns end when they are due, once, after any crash (ADR 0041)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select, update
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment

from activities.maintenance.reconciler import Reconciler
from cli.work_handlers.background import TimeEntries
from models.core.base import Id
from models.data.time_entries.commands import delete_entry
from models.data.time_entries.rules import EntryStatus
from models.data.time_entries.tables import time_entry
from models.messages.notifications.queries import notification
from runtime.database import Database
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, graph, node, running_engine
from tests.support.patience import eventually
from tests.support.postgres import migrated_database
from tests.support.run_rows import runs_of
from tests.support.temporal import dev_server, time_skipping_server
from tests.support.timer_stories import change, ended, row, start, waits

pytestmark = pytest.mark.takes(seconds=20)

HOUR = 3_600_000


async def bells(engine: Engine, entry_id: Id) -> int:
    """How often the end of an entry rang."""
    async with engine.database.reading() as work:
        rang = notification.c.data["timeEntryId"].astext == str(entry_id)
        return len(await work.rows(select(notification.c.id).where(rang)))


async def listener(engine: Engine) -> Id:
    """An automation that time entries start."""
    content = graph(node("a", "transform", output={"ok": True}))
    made = await engine.publish(content, triggerConfig={"kind": "time_entry_completed"})
    return made.id


async def heard(engine: Engine, automation_id: Id, entry_id: Id) -> list[Any]:
    """The payloads of the runs that the end of an entry started."""
    return [
        run.trigger_payload
        for run in await runs_of(engine, automation_id)
        if run.trigger_payload["entry"]["id"] == str(entry_id)
    ]


async def status_of(engine: Engine, entry_id: Id) -> WorkflowExecutionStatus | None:
    handle = engine.client.get_workflow_handle(WorkflowKind.TIMER_DUE.workflow_id(entry_id))
    return (await handle.describe()).status


async def over(engine: Engine, entry_id: Id) -> None:
    """Wait until the execution of an entry has completed."""

    async def is_over() -> bool:
        return await status_of(engine, entry_id) is WorkflowExecutionStatus.COMPLETED

    await eventually(is_over, what=f"the end of the execution of {entry_id}")


async def sweep(engine: Engine) -> dict[str, int]:
    await engine.delivered(WorkflowKind.TIMER_DUE)
    workflow_kinds = [TimeEntries()]
    reconciler = Reconciler(engine.database, engine.client, workflow_kinds, grace=timedelta())
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    return await environment.run(reconciler.reconcile)


@pytest.mark.long
async def test_a_countdown_rings_when_it_is_due(engine: Engine) -> None:
    automation_id = await listener(engine)
    entry = await start(engine, targetDurationMs=400, soundId="bell")
    found = await ended(engine, entry.id)
    assert (found.status, found.completed_by) == (EntryStatus.COMPLETED, "timer")
    assert found.ended_at == entry.due_at
    assert found.closed_at is not None
    assert found.closed_at >= found.ended_at
    assert found.duration_ms == 400
    await over(engine, entry.id)
    assert await bells(engine, entry.id) == 1

    async def was_heard() -> bool:
        return bool(await heard(engine, automation_id, entry.id))

    await eventually(was_heard, what="the run of the automation")
    ((payload),) = await heard(engine, automation_id, entry.id)
    assert payload["entry"]["completedBy"] == "timer"
    assert payload["entry"]["durationMs"] == 400


@pytest.mark.long
async def test_a_timer_is_moved(engine: Engine) -> None:
    entry = await start(engine, targetDurationMs=HOUR)
    await waits(engine, entry.id)
    await change(engine, entry.id, action="pause")
    resumed = await change(engine, entry.id, action="resume")
    await waits(engine, entry.id, 2)
    elapsed = resumed.updated_at - resumed.started_at
    soon = int(elapsed / timedelta(milliseconds=1)) + 500
    moved = await change(engine, entry.id, targetDurationMs=soon)
    found = await ended(engine, entry.id)
    assert (found.completed_by, found.ended_at) == ("timer", moved.due_at)
    await over(engine, entry.id)
    assert await bells(engine, entry.id) == 1


@pytest.mark.parametrize("how", ["complete", "discard", "delete"])
async def test_ending_a_countdown_ends_its_execution(engine: Engine, how: str) -> None:
    entry = await start(engine, targetDurationMs=HOUR)
    await waits(engine, entry.id)
    if how == "delete":
        async with engine.database.transaction() as work:
            await delete_entry(work, engine.actor, entry.id)
    else:
        await change(engine, entry.id, action=how)
    await over(engine, entry.id)
    assert await bells(engine, entry.id) == 0


async def test_a_lost_signal_is_sent_again(engine: Engine) -> None:
    entry = await start(engine, targetDurationMs=HOUR)
    await waits(engine, entry.id)
    due = entry.started_at + timedelta(milliseconds=1)
    async with engine.database.transaction() as work:
        this = time_entry.c.id == entry.id
        shorter = {"due_at": due, "target_duration_ms": 1}
        await work.execute(update(time_entry).where(this).values(shorter))
    assert (await sweep(engine))["time_entries_restarted"] == 1
    found = await ended(engine, entry.id)
    assert (found.completed_by, found.ended_at) == ("timer", due)


async def test_terminating_the_execution_does_not_stop_the_clock(engine: Engine) -> None:
    entry = await start(engine, targetDurationMs=HOUR)
    await waits(engine, entry.id)
    handle = engine.client.get_workflow_handle(WorkflowKind.TIMER_DUE.workflow_id(entry.id))
    await handle.terminate()
    assert (await sweep(engine))["time_entries_restarted"] == 1

    async def runs_again() -> bool:
        return await status_of(engine, entry.id) is WorkflowExecutionStatus.RUNNING

    await eventually(runs_again, what="another execution")
    assert (await row(engine, entry.id)).status == EntryStatus.ACTIVE
    await change(engine, entry.id, action="discard")


@pytest_asyncio.fixture
async def own_database() -> AsyncIterator[tuple[Database, str]]:
    with migrated_database("timers") as url:
        database = Database(url)
        yield database, url
        await database.close()


@pytest.mark.long
async def test_eight_hours_outlive_worker_and_temporal(own_database: tuple[Database, str]) -> None:
    database, url = own_database
    async with (
        dev_server() as first,
        running_engine(database, url, first.client) as engine,
    ):
        automation_id = await listener(engine)
        entry = await start(engine, targetDurationMs=8 * HOUR)
        await waits(engine, entry.id)
        # What the outbox still holds would be delivered to the other server, and not be restarted.
        await engine.delivered(WorkflowKind.TIMER_DUE)
    # That Temporal is gone with all it knew, and so is its worker.
    async with (
        time_skipping_server() as second,
        running_engine(database, url, second.client),
    ):
        later = Engine(database, second.client, engine.actor)
        with pytest.raises(RPCError):
            await status_of(later, entry.id)
        assert (await sweep(later))["time_entries_restarted"] == 1
        found = await ended(later, entry.id)
        assert (found.completed_by, found.ended_at) == ("timer", entry.due_at)
        assert found.duration_ms == 8 * HOUR
        await over(later, entry.id)
        assert (await sweep(later))["time_entries_restarted"] == 0
        assert await bells(later, entry.id) == 1

        async def was_heard() -> bool:
            return bool(await heard(later, automation_id, entry.id))

        await eventually(was_heard, what="the run of the automation")
        assert len(await heard(later, automation_id, entry.id)) == 1

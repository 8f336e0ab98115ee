"""A schedule fires: one run of each due time, after any failure (ADR 0016)."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select
from temporalio.client import (
    ScheduleBackfill,
    ScheduleOverlapPolicy,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

from activities.schedules import FireCall, ScheduleFires, Schedules
from cli.work_handlers.registry import SCHEDULED
from models.automation.automation_runs import commands
from models.automation.automation_runs.tables import automation_run
from models.automation.automations.schedules import preview_stored
from models.automation.automations.shapes import Backfill, Backfilled
from models.core.base import Id
from models.core.pauses.rules import PauseSubject
from models.core.schedules.timetables import PassedOver, due_run_id
from runtime.ids import new_id
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from tests.support.engine import Engine
from tests.support.patience import ENOUGH, eventually
from tests.support.pauses import pause_work, resume_work
from tests.support.run_rows import runs_of
from tests.support.schedules import (
    LONG,
    QUICK,
    described,
    handle_of,
    next_run_at,
    schedule,
    schedule_id_of,
    scheduled,
    soon,
    until_runs,
    until_schedule,
)

pytestmark = pytest.mark.takes(seconds=30)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVERY_HOUR = "0 11-15 1 1 *"
"""Around noon of that day: no hour that strikes while a test looks is a due time."""


async def until_fires(
    engine: Engine, automation_id: Id, count: int = 1
) -> list[WorkflowHandle[Any, Any]]:
    """The fires of a schedule once Temporal lists this number, oldest first."""
    found = await until_schedule(
        engine, automation_id, lambda found: len(found.info.recent_actions) == count, "the fires"
    )
    assert found is not None
    recent: Sequence[Any] = found.info.recent_actions
    return [engine.client.get_workflow_handle(result.action.workflow_id) for result in recent]


async def until_closed(handle: WorkflowHandle[Any, Any]) -> WorkflowExecutionStatus | None:
    """How an execution ended. The reconciler, which would end it too, is paused in tests."""

    async def closed() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await eventually(closed, what=f"the end of {handle.id}")
    return (await handle.describe()).status


async def trigger(engine: Engine, automation_id: Id) -> None:
    """Fire now, as an operator does; never twice in one second, which is one due time."""
    await asyncio.sleep(1)
    await handle_of(engine.client, automation_id).trigger()


async def backfill(engine: Engine, automation_id: Id, start: datetime, end: datetime) -> Backfilled:
    body = Backfill.model_validate({"from": start.isoformat(), "to": end.isoformat()})
    async with engine.database.transaction() as work:
        return await commands.backfill(work, engine.actor, automation_id, body)


@pytest.mark.long
async def test_a_due_time_that_comes_makes_its_run(engine: Engine) -> None:
    due = soon(datetime.now(UTC), 7)
    made = await scheduled(
        engine, intervalSeconds=3_600, startAt=due.isoformat(), timezone="Europe/Berlin"
    )
    assert made.next_run_at == due
    [run] = await until_runs(engine, made.id, "succeeded")
    assert (run.source, run.id) == ("schedule", due_run_id(schedule_id_of(made.id), due))
    assert run.trigger_payload == {
        "scheduledAt": f"{due:%Y-%m-%dT%H:%M:%S}.000Z",
        "timezone": "Europe/Berlin",
    }
    assert run.automation_version_id == made.published_version_id
    assert run.created_by_user_id is None
    assert await next_run_at(engine, made.id) == due + HOUR
    [fire] = await until_fires(engine, made.id)
    assert await until_closed(fire) is WorkflowExecutionStatus.COMPLETED
    assert await fire.result() == str(run.id)


@pytest.mark.long
async def test_an_operator_sees_the_fire_and_its_run(engine: Engine) -> None:
    made = await scheduled(engine, LONG)
    await trigger(engine, made.id)
    [run] = await until_runs(engine, made.id, "waiting")
    [fire] = await until_fires(engine, made.id)
    child = await engine.client.get_workflow_handle(f"automation-run/{run.id}").describe()
    assert child.parent_id == fire.id
    assert await child.static_summary() == "Test · v1 · schedule"
    assert await (await fire.describe()).static_summary() == "Test · schedule"
    attributes = {
        name: child.typed_search_attributes.get(SearchAttributeKey.for_keyword(name))
        for name in ("WorkspaceId", "ResourceId", "RunKind", "RunSource")
    }
    assert attributes == {
        "WorkspaceId": str(made.workspace_id),
        "ResourceId": str(made.id),
        "RunKind": "automation-run",
        "RunSource": "schedule",
    }
    assert child.raw_info.priority.fairness_key == f"{made.workspace_id}/automation-schedule"
    await engine.cancel(made.id, run.id)


@pytest.mark.long
@pytest.mark.parametrize(
    ("overlap", "meanwhile", "afterwards"),
    [
        ("skip", ["waiting"], ["cancelled"]),
        ("buffer_one", ["waiting"], ["cancelled", "waiting"]),
        ("allow_all", ["waiting", "waiting"], ["cancelled", "waiting"]),
        ("cancel_other", ["cancelled", "waiting"], ["cancelled", "waiting"]),
    ],
)
async def test_overlap_is_about_the_run_itself(
    engine: Engine, overlap: str, meanwhile: list[str], afterwards: list[str]
) -> None:
    made = await scheduled(engine, LONG, cron="0 0 1 1 *", overlap=overlap)
    await trigger(engine, made.id)
    [first] = await until_runs(engine, made.id, "waiting")
    await trigger(engine, made.id)
    await until_runs(engine, made.id, *meanwhile)
    if overlap == "skip":
        await until_schedule(
            engine, made.id, lambda found: found.info.num_actions_skipped_overlap == 1
        )
    await engine.cancel(made.id, first.id)
    runs = await until_runs(engine, made.id, *afterwards)
    found = await described(engine.client, made.id)
    assert found is not None
    assert found.info.num_actions_skipped_overlap == (overlap == "skip")
    await Schedules(engine.database, engine.client, SCHEDULED).synchronize(schedule_id_of(made.id))
    async with engine.database.transaction() as work:
        told = await preview_stored(work, engine.actor, made.id, 1, None)
    assert told.passed_over == PassedOver(skipped=int(overlap == "skip"), missed=0)
    for run in runs:
        await engine.cancel(made.id, run.id)


@pytest.mark.long
async def test_a_skipped_time_lets_the_next_one_through(engine: Engine) -> None:
    made = await scheduled(engine, LONG)
    await trigger(engine, made.id)
    [first] = await until_runs(engine, made.id, "waiting")
    await engine.cancel(made.id, first.id)
    [fire] = await until_fires(engine, made.id)
    assert await until_closed(fire) is WorkflowExecutionStatus.COMPLETED
    await trigger(engine, made.id)
    [_, second] = await until_runs(engine, made.id, "cancelled", "waiting")
    await engine.cancel(made.id, second.id)


@pytest.mark.long
@pytest.mark.parametrize("way", ["cancel", "terminate"])
async def test_a_fire_that_is_ended_ends_its_run(engine: Engine, way: str) -> None:
    made = await scheduled(engine, LONG)
    await trigger(engine, made.id)
    await until_runs(engine, made.id, "waiting")
    [fire] = await until_fires(engine, made.id)
    await (fire.cancel() if way == "cancel" else fire.terminate())
    [run] = await until_runs(engine, made.id, "cancelled")
    assert run.error == "Cancelled in Temporal."


@pytest.mark.long
async def test_a_fire_cancelled_as_it_accepts_leaves_no_open_run(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await scheduled(engine, LONG)
    reached, show_running = asyncio.Event(), asyncio.Event()
    original = commands.fire

    async def slow(*arguments: Any) -> Any:
        accepted = await original(*arguments)
        reached.set()
        await show_running.wait()
        return accepted

    monkeypatch.setattr("activities.schedules.fire_automation", slow)
    await trigger(engine, made.id)
    await asyncio.wait_for(reached.wait(), ENOUGH)
    [fire] = await until_fires(engine, made.id)
    await fire.cancel()

    async def heard() -> bool:
        """A workflow task has begun since; a local activity that is out delays it."""
        kinds = [event.WhichOneof("attributes") for event in (await fire.fetch_history()).events]
        cancelled = "workflow_execution_cancel_requested_event_attributes"
        started = "workflow_task_started_event_attributes"
        return cancelled in kinds and started in kinds[kinds.index(cancelled) :]

    await eventually(heard)
    await asyncio.sleep(0.5)
    show_running.set()
    assert await until_closed(fire) is WorkflowExecutionStatus.CANCELED
    assert [run.status for run in await runs_of(engine, made.id)] == ["cancelled"]


@pytest.mark.long
async def test_disabled_and_deleted_automations_do_not_fire(engine: Engine) -> None:
    made = await scheduled(engine)
    await engine.change(made.id, enabled=False)
    await until_schedule(engine, made.id, lambda found: found.schedule.state.paused)
    await trigger(engine, made.id)
    manual = await engine.publish(QUICK)
    strangers = [
        await engine.client.start_workflow(
            "ScheduleFire", one, id=f"{one}-x", task_queue=Queue.AUTOMATION
        )
        for one in (schedule_id_of(manual.id), schedule_id_of(new_id()))
    ]
    [fire] = await until_fires(engine, made.id)
    for handle in (fire, *strangers):
        assert await until_closed(handle) is WorkflowExecutionStatus.COMPLETED
        assert await engine.client.get_workflow_handle(handle.id).result() == "not run"
    assert await runs_of(engine, made.id) == await runs_of(engine, manual.id) == []


@pytest.mark.long
async def test_one_due_time_has_one_run_however_often_it_is_asked_for(engine: Engine) -> None:
    made = await scheduled(engine, cron=EVERY_HOUR)
    assert (await backfill(engine, made.id, NOON, NOON + 2 * HOUR)).created == 3
    again = await backfill(engine, made.id, NOON - HOUR, NOON + 2 * HOUR)
    assert (again.count, again.created) == (4, 1)
    await until_runs(engine, made.id, *["succeeded"] * 4)
    await handle_of(engine.client, made.id).backfill(
        ScheduleBackfill(
            start_at=NOON - HOUR,
            end_at=NOON + 3 * HOUR,
            overlap=ScheduleOverlapPolicy.ALLOW_ALL,
        )
    )
    runs = await until_runs(engine, made.id, *["succeeded"] * 5)
    assert [run.source for run in runs] == ["backfill"] * 4 + ["schedule"]
    assert {run.trigger_payload["scheduledAt"] for run in runs} == {
        f"2026-01-01T{hour}:00:00.000Z" for hour in range(11, 16)
    }
    fires = await until_fires(engine, made.id, 5)
    for fire in fires:
        await until_closed(fire)


async def test_accepting_a_due_time_again_finds_the_same_run(engine: Engine) -> None:
    made = await scheduled(engine, LONG, cron=EVERY_HOUR)
    fires = ScheduleFires(engine.database)
    call = FireCall(schedule_id_of(made.id), NOON)
    found = await asyncio.gather(*(fires.accept(call) for _ in range(5)))
    assert {one and one.run_id for one in found} == {str(due_run_id(schedule_id_of(made.id), NOON))}
    async with engine.database.transaction() as work:
        starts = await work.scalar(
            select(func.count())
            .select_from(outbox)
            .where(outbox.c.subject_id == due_run_id(schedule_id_of(made.id), NOON))
        )
    assert starts == 0
    await engine.cancel(made.id, due_run_id(schedule_id_of(made.id), NOON))
    assert await fires.accept(call) is None
    assert len(await runs_of(engine, made.id)) == 1


async def test_a_run_that_the_reconciler_started_is_waited_for(engine: Engine) -> None:
    made = await scheduled(engine, LONG, cron=EVERY_HOUR)
    run_id = due_run_id(schedule_id_of(made.id), NOON)
    assert (
        await ScheduleFires(engine.database).accept(FireCall(schedule_id_of(made.id), NOON))
        is not None
    )
    await engine.client.start_workflow(
        "AutomationRun", str(run_id), id=f"automation-run/{run_id}", task_queue=Queue.AUTOMATION
    )
    await until_runs(engine, made.id, "waiting")
    await handle_of(engine.client, made.id).backfill(
        ScheduleBackfill(start_at=NOON, end_at=NOON, overlap=ScheduleOverlapPolicy.ALLOW_ALL)
    )
    [fire] = await until_fires(engine, made.id)
    assert (await fire.describe()).status is WorkflowExecutionStatus.RUNNING
    await engine.cancel(made.id, run_id)
    assert await until_closed(fire) is WorkflowExecutionStatus.COMPLETED


@pytest.mark.long
async def test_a_fire_that_waits_for_a_slot_continues_when_it_gets_one(engine: Engine) -> None:
    made = await engine.publish(
        LONG,
        triggerConfig={
            **schedule(cron="0 0 1 1 *", overlap="allow_all"),
            "concurrency": {"limit": 1, "policy": "queue"},
        },
    )
    await until_schedule(engine, made.id, lambda found: found is not None)
    await trigger(engine, made.id)
    [first] = await until_runs(engine, made.id, "waiting")
    await trigger(engine, made.id)
    await until_runs(engine, made.id, "waiting", "queued")
    await trigger(engine, made.id)
    [_, second, third] = await until_runs(engine, made.id, "waiting", "queued", "queued")
    fires = await until_fires(engine, made.id, 3)
    await engine.cancel(made.id, third.id)
    assert await until_closed(fires[2]) is WorkflowExecutionStatus.COMPLETED
    await engine.cancel(made.id, first.id)
    await until_runs(engine, made.id, "cancelled", "waiting", "cancelled")
    await engine.cancel(made.id, second.id)
    for fire in fires:
        assert await until_closed(fire) is WorkflowExecutionStatus.COMPLETED


@pytest.mark.long
@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_fire_whose_slot_comes_under_a_pause_hears_how_it_ends(
    engine: Engine, cancelled: bool
) -> None:
    """Its execution waits already: the pause must not part its start from the signal to it."""
    made = await engine.publish(
        LONG,
        triggerConfig={
            **schedule(cron="0 0 1 1 *", overlap="allow_all"),
            "concurrency": {"limit": 1, "policy": "queue"},
        },
    )
    await until_schedule(engine, made.id, lambda found: found is not None)
    await trigger(engine, made.id)
    [first] = await until_runs(engine, made.id, "waiting")
    await trigger(engine, made.id)
    [_, second] = await until_runs(engine, made.id, "waiting", "queued")
    fires = await until_fires(engine, made.id, 2)
    run = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(second.id))

    async def waits_for_its_slot() -> bool:
        """Its first look for one is recorded."""
        with suppress(RPCError):
            return (await run.describe()).history_length > 4
        return False

    await eventually(waits_for_its_slot)
    await pause_work(engine, PauseSubject.AUTOMATION, made.id)
    await engine.cancel(made.id, first.id)
    if not cancelled:
        await resume_work(engine, PauseSubject.AUTOMATION, made.id, rate=60)
        await until_runs(engine, made.id, "cancelled", "waiting")
    await engine.cancel(made.id, second.id)
    for fire in fires:
        assert await until_closed(fire) is WorkflowExecutionStatus.COMPLETED


@pytest.mark.long
async def test_a_backfill_is_there_at_once_and_starts_by_the_relay(engine: Engine) -> None:
    made = await engine.publish(QUICK, triggerConfig=schedule(intervalSeconds=60))
    start = datetime(2026, 3, 1, tzinfo=UTC)
    found = await backfill(engine, made.id, start, start + timedelta(minutes=59))
    assert (found.count, found.created) == (60, 60)
    async with engine.database.transaction() as work:
        sources = await work.rows(
            select(automation_run.c.source, func.count())
            .where(automation_run.c.automation_id == made.id)
            .group_by(automation_run.c.source)
        )
    assert ("backfill", 60) in [tuple(row) for row in sources]

    async def ended() -> bool:
        runs = await runs_of(engine, made.id)
        return all(run.status == "succeeded" for run in runs if run.source == "backfill")

    await eventually(ended)
    await engine.change(made.id, enabled=False)

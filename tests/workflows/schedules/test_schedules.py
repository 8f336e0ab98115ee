"""Schedules follow the automation: what Temporal has of one is what the rows say (ADR 0016)."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update
from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    ScheduleSpec,
    ScheduleUpdate,
)
from temporalio.common import SearchAttributeKey
from temporalio.testing import ActivityEnvironment

from activities.maintenance import reconciler as maintenance_schedules
from activities.maintenance.reconciler import ScheduleMaintenance
from activities.schedules import Schedules
from cli.work_handlers.registry import SCHEDULED
from models.automation.automations import commands as automations
from models.automation.automations.shapes import (
    CreateAutomation,
    PublishAutomation,
    UpdateAutomation,
)
from models.automation.automations.tables import automation
from models.content.items import commands as items
from models.content.items.shapes import UpdateItem
from models.core.base import Id
from models.people.workspaces import delete_workspace
from models.workspace.targets.items import update_item
from runtime.ids import new_id
from runtime.temporal.outbox import outbox
from tests.support.engine import KEYS, Engine
from tests.support.patience import eventually
from tests.support.schedules import (
    QUICK,
    described,
    handle_of,
    next_run_at,
    schedule,
    schedule_id_of,
    scheduled,
    until_schedule,
)
from tests.support.spaces import make_space

pytestmark = pytest.mark.takes(seconds=20)

NEW_YEAR = datetime(datetime.now(UTC).year + 1, 1, 1, tzinfo=UTC)


def schedules(engine: Engine) -> Schedules:
    return Schedules(engine.database, engine.client, SCHEDULED)


async def sweep(engine: Engine, batch: int = 500) -> dict[str, int]:
    """One sweep of the reconciler."""
    maintenance = ScheduleMaintenance(
        engine.database, engine.client, schedules(engine), batch=batch
    )
    return await ActivityEnvironment().run(maintenance.reconcile_schedules)


async def delivered(engine: Engine, automation_id: Id) -> None:
    """Wait until the relay has nothing left to tell of an automation."""

    async def nothing_left() -> bool:
        async with engine.database.transaction() as work:
            left = select(func.count()).where(outbox.c.subject_id == automation_id)
            return not await work.scalar(left)

    await eventually(nothing_left, what="the delivery")


async def republish(engine: Engine, automation_id: Id, version_id: Id | None = None) -> None:
    body = PublishAutomation.model_validate({"versionId": version_id and str(version_id)})
    async with engine.database.transaction() as work:
        await automations.publish(work, engine.actor, KEYS, automation_id, body)


async def test_publishing_creates_the_schedule(engine: Engine) -> None:
    made = await scheduled(
        engine,
        cron="*/15 9-17 * * mon-fri",
        timezone="Europe/Berlin",
        jitterSeconds=30,
        overlap="buffer_one",
        catchupWindowSeconds=120,
        # So far away that it is not due between two looks.
        startAt="2080-01-01T00:00:00Z",
        endAt="2090-01-01T00:00:00+01:00",
    )
    found = await described(engine.client, made.id)
    assert found is not None
    spec, policy, action = found.schedule.spec, found.schedule.policy, found.schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    assert (spec.time_zone_name, spec.jitter) == ("Europe/Berlin", timedelta(seconds=30))
    assert (spec.start_at, spec.end_at) == (
        datetime(2080, 1, 1, tzinfo=UTC),
        datetime(2089, 12, 31, 23, tzinfo=UTC),
    )
    assert policy.overlap is ScheduleOverlapPolicy.BUFFER_ONE
    assert (policy.catchup_window, policy.pause_on_failure) == (timedelta(minutes=2), False)
    assert (action.workflow, action.id) == ("ScheduleFire", f"automation-schedule/{made.id}")
    for attributes in (found.typed_search_attributes, action.typed_search_attributes):
        assert {
            name: attributes.get(SearchAttributeKey.for_keyword(name))
            for name in ("WorkspaceId", "ResourceId", "RunKind")
        } == {
            "WorkspaceId": str(made.workspace_id),
            "ResourceId": str(made.id),
            "RunKind": "automation-schedule",
        }
    assert made.next_run_at is not None
    due = [moment.replace(second=0, microsecond=0) for moment in found.info.next_action_times]
    assert made.next_run_at in due


async def test_a_schedule_that_is_right_is_left_alone(engine: Engine) -> None:
    made = await scheduled(engine, intervalSeconds=86_400, startAt="2026-01-01T07:30:00Z")
    await schedules(engine).synchronize(schedule_id_of(made.id))
    await sweep(engine)
    found = await described(engine.client, made.id)
    assert found is not None
    assert found.info.last_updated_at is None
    # An interval counts from its start.
    assert made.next_run_at is not None
    assert f"{made.next_run_at:%H:%M}" == "07:30"
    assert found.info.next_action_times[0] == made.next_run_at


async def test_disabling_pauses_and_enabling_resumes(engine: Engine) -> None:
    made = await scheduled(engine)
    assert made.next_run_at == NEW_YEAR
    assert (await engine.change(made.id, enabled=False)).next_run_at is None
    paused = await until_schedule(engine, made.id, lambda found: found.schedule.state.paused)
    assert paused is not None
    assert paused.schedule.state.note == "Test · schedule. The automation is disabled."
    assert (await engine.change(made.id, enabled=True)).next_run_at == NEW_YEAR
    await until_schedule(engine, made.id, lambda found: not found.schedule.state.paused)


async def test_a_disabled_automation_is_published_with_a_paused_schedule(engine: Engine) -> None:
    made = await scheduled(engine)
    other = await engine.publish(QUICK, triggerConfig=schedule(), enabled=False)
    assert other.next_run_at is None
    await until_schedule(engine, other.id, lambda found: found and found.schedule.state.paused)
    assert (await next_run_at(engine, made.id)) == NEW_YEAR


async def test_publishing_another_version_changes_the_schedule(engine: Engine) -> None:
    made = await scheduled(engine)
    first = made.published_version_id
    await engine.change(made.id, triggerConfig=schedule(intervalSeconds=7_200))
    assert (await next_run_at(engine, made.id)) == NEW_YEAR
    await republish(engine, made.id)
    await until_schedule(engine, made.id, lambda found: found.schedule.spec.intervals)
    await engine.change(made.id, triggerConfig={"kind": "manual"})
    await republish(engine, made.id)
    assert await next_run_at(engine, made.id) is None
    await until_schedule(engine, made.id, lambda found: found is None)
    await republish(engine, made.id, first)
    assert await next_run_at(engine, made.id) == NEW_YEAR
    await until_schedule(engine, made.id, lambda found: found and found.schedule.spec.calendars)


async def test_a_new_label_shows_on_the_fires(engine: Engine) -> None:
    made = await scheduled(engine)

    def named(label: bytes) -> Any:
        return lambda found: label in found.schedule.action.static_summary.data

    await engine.change(made.id, label="Nightly " + "ü" * 150)
    await until_schedule(engine, made.id, named(b"Nightly"))
    async with engine.database.transaction() as work:
        title = UpdateItem.model_validate({"title": "Weekly"})
        await update_item(work, engine.actor, made.item_id, title)
    await until_schedule(engine, made.id, named(b"Weekly"))


@pytest.mark.long
async def test_the_trash_the_archive_and_the_way_back(engine: Engine) -> None:
    made = await scheduled(engine)

    async def moved(move: Any, *, there: bool, paused: bool = False, **options: Any) -> None:
        async with engine.database.transaction() as work:
            await move(work, engine.actor, made.item_id, **options)

        def so(found: Any) -> bool:
            if found is None:
                return not there
            return there and found.schedule.state.paused is paused

        await until_schedule(engine, made.id, so)

    await moved(items.archive_item, there=True, paused=True, archived=True)
    assert await next_run_at(engine, made.id) is None
    await moved(items.restore_item, there=True)
    assert await next_run_at(engine, made.id) == NEW_YEAR
    await moved(items.trash_item, there=False)
    await moved(items.restore_item, there=True)
    assert await next_run_at(engine, made.id) == NEW_YEAR


async def test_schedules_below_a_trashed_item_are_removed(engine: Engine) -> None:
    above = await engine.publish(QUICK)
    below = await engine.publish(QUICK, triggerConfig=schedule(), parentItemId=str(above.item_id))
    await until_schedule(engine, below.id, lambda found: found is not None)
    async with engine.database.transaction() as work:
        await automations.delete_automation(work, engine.actor, KEYS, above.id)
    await until_schedule(engine, below.id, lambda found: found is None)


async def test_a_closed_workspace_has_no_schedules(engine: Engine) -> None:
    other = Engine(engine.database, engine.client, (await make_space(engine.database, KEYS)).actor)
    made = await scheduled(other)
    async with engine.database.transaction() as work:
        await delete_workspace(work, other.actor)
    await until_schedule(other, made.id, lambda found: found is None)


@pytest.mark.long
async def test_a_delivery_that_was_overtaken_ends_right(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await scheduled(engine)
    reached, show_running = asyncio.Event(), asyncio.Event()
    original = Schedules._write

    async def held(self: Schedules, *arguments: Any) -> None:
        if not reached.is_set():
            reached.set()
            await show_running.wait()
        await original(self, *arguments)

    monkeypatch.setattr(Schedules, "_write", held)
    overtaken = asyncio.create_task(schedules(engine).synchronize(schedule_id_of(made.id)))
    await reached.wait()
    await engine.change(made.id, enabled=False)
    await until_schedule(engine, made.id, lambda found: found.schedule.state.paused)
    show_running.set()
    await overtaken
    found = await described(engine.client, made.id)
    assert found is not None
    assert found.schedule.state.paused


@pytest.mark.long
async def test_deliveries_side_by_side_end_right(engine: Engine) -> None:
    made = await scheduled(engine)
    for enabled in (False, True, False):
        early = [
            asyncio.create_task(schedules(engine).synchronize(schedule_id_of(made.id)))
            for _ in range(3)
        ]
        await engine.change(made.id, enabled=enabled)
        await asyncio.gather(*early, schedules(engine).synchronize(schedule_id_of(made.id)))
        await delivered(engine, made.id)
        found = await described(engine.client, made.id)
        assert found is not None
        assert found.schedule.state.paused is not enabled


async def test_only_automations_with_a_schedule_are_sent_to_temporal(engine: Engine) -> None:
    async def told(trigger_config: dict[str, Any]) -> int:
        """The number of intents left by publishing, disabling and deleting an automation."""
        body = {"label": "Test", "graph": QUICK, "enabled": True, "triggerConfig": trigger_config}
        # One transaction, so that no relay sees them in between.
        async with engine.database.transaction() as work:
            made = await automations.create_automation(
                work, engine.actor, KEYS, CreateAutomation.model_validate(body)
            )
            await automations.publish(
                work, engine.actor, KEYS, made.id, PublishAutomation.model_validate({})
            )
            await automations.update_automation(
                work,
                engine.actor,
                KEYS,
                made.id,
                UpdateAutomation.model_validate({"enabled": False}),
            )
            await automations.delete_automation(work, engine.actor, KEYS, made.id)
            left = select(func.count()).where(outbox.c.subject_id == made.id)
            return int(await work.scalar(left) or 0)

    assert await told(schedule()) == 3
    assert await told({"kind": "manual"}) == 0


@pytest.mark.long
async def test_a_delivery_repeats_until_temporal_is_there(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([True, True])
    original = Schedules._write

    async def flaky(self: Schedules, *arguments: Any) -> None:
        if next(failures, False):
            raise ConnectionError("Temporal is away")
        await original(self, *arguments)

    monkeypatch.setattr(Schedules, "_write", flaky)
    await scheduled(engine)


@pytest.mark.long
async def test_the_sweep_mends_what_operators_did(engine: Engine) -> None:
    lost, paused, turned = [await scheduled(engine) for _ in range(3)]
    await handle_of(engine.client, lost.id).delete()
    await handle_of(engine.client, paused.id).pause(note="Quiet, please.")
    other = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(days=9))])

    def turn(given: Any) -> ScheduleUpdate:
        found: Schedule = given.description.schedule
        found.spec = other
        return ScheduleUpdate(found)

    await handle_of(engine.client, turned.id).update(turn)
    async with engine.database.transaction() as work:
        await work.execute(
            update(automation).where(automation.c.id == lost.id).values(next_run_at=None)
        )

    async def mended() -> bool:
        # The list that finds candidates lags.
        await sweep(engine, batch=2)
        found = [await described(engine.client, one.id) for one in (lost, paused, turned)]
        return all(
            one is not None and not one.schedule.state.paused and one.schedule.spec.calendars
            for one in found
        )

    await eventually(mended)
    assert await next_run_at(engine, lost.id) == NEW_YEAR


BY_OLD_RULES = ScheduleSpec(cron_expressions=["30 2 * * 1"], time_zone_name="Europe/Berlin")


async def test_the_sweep_brings_schedules_to_the_rules_of_this_version(engine: Engine) -> None:
    made = await scheduled(engine, cron="*/20 2 1 * 1", timezone="Europe/Berlin")
    found = await described(engine.client, made.id)
    assert found is not None
    right = found.schedule.spec

    def turn(given: Any) -> ScheduleUpdate:
        given.description.schedule.spec = BY_OLD_RULES
        return ScheduleUpdate(given.description.schedule)

    await handle_of(engine.client, made.id).update(turn)
    async with engine.database.transaction() as work:
        await work.execute(
            update(automation).where(automation.c.id == made.id).values(next_run_at=NEW_YEAR)
        )

    async def mended() -> bool:
        await sweep(engine)
        found = await described(engine.client, made.id)
        return found is not None and found.schedule.spec == right

    await eventually(mended)
    assert await next_run_at(engine, made.id) == made.next_run_at


async def test_the_sweep_leaves_a_schedule_of_many_parts_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporal's list shows only some of them."""
    made = await scheduled(engine, cron="*/20 * * * 0", timezone="Europe/Berlin")
    found = await described(engine.client, made.id)
    assert found is not None
    assert len(found.schedule.spec.intervals) > 10
    original, looked_at = Schedules.synchronize, list[str]()

    async def noted(self: Schedules, schedule_id: str) -> None:
        looked_at.append(schedule_id)
        await original(self, schedule_id)

    monkeypatch.setattr(Schedules, "synchronize", noted)
    # So that it is never its turn.
    monkeypatch.setattr(maintenance_schedules, "TURNS", 2**127)

    async def left_alone() -> bool:
        # The list lags.
        looked_at.clear()
        await sweep(engine)
        return schedule_id_of(made.id) not in looked_at

    await eventually(left_alone)


async def test_the_sweep_removes_schedules_of_nothing(engine: Engine) -> None:
    strange = new_id()
    example = await scheduled(engine)
    found = await described(engine.client, example.id)
    assert found is not None
    await engine.client.create_schedule(
        f"automation-schedule/{strange}",
        found.schedule,
        search_attributes=found.typed_search_attributes,
    )

    async def removed() -> bool:
        await sweep(engine)
        return await described(engine.client, strange) is None

    await eventually(removed)
    assert await described(engine.client, example.id) is not None


@pytest.mark.long
async def test_the_trouble_of_one_is_not_that_of_the_others(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, lost = await scheduled(engine), await scheduled(engine)
    original = Schedules.synchronize

    async def refusing(self: Schedules, schedule_id: str) -> None:
        if schedule_id == schedule_id_of(odd.id):
            raise ConnectionError("not this one")
        await original(self, schedule_id)

    monkeypatch.setattr(Schedules, "synchronize", refusing)
    for made in (odd, lost):
        await handle_of(engine.client, made.id).pause(note="By hand.")

    async def mended() -> bool:
        await sweep(engine)
        found = await described(engine.client, lost.id)
        return found is not None and not found.schedule.state.paused

    await eventually(mended)
    found = await described(engine.client, odd.id)
    assert found is not None
    assert found.schedule.state.paused


@pytest.mark.long
async def test_a_schedule_that_has_ended_is_not_made_again(engine: Engine) -> None:
    end = datetime.now(UTC) + timedelta(seconds=7)
    later = end + timedelta(seconds=1)
    made = await scheduled(
        engine, intervalSeconds=60, startAt=end.isoformat(), endAt=later.isoformat()
    )
    assert made.next_run_at == end.replace(microsecond=0)
    await asyncio.sleep((end - datetime.now(UTC)).total_seconds() + 2)
    await handle_of(engine.client, made.id).delete()
    await sweep(engine)
    assert await described(engine.client, made.id) is None
    assert await next_run_at(engine, made.id) is None

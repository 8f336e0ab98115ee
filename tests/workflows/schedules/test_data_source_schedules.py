"""The schedule of a data source: Temporal follows the rows, and each due time makes its refresh."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from temporalio.client import (
    ScheduleActionStartWorkflow,
    ScheduleDescription,
    ScheduleOverlapPolicy,
)
from temporalio.common import SearchAttributeKey
from temporalio.testing import ActivityEnvironment

from activities.maintenance.reconciler import ScheduleMaintenance
from activities.schedules import FireCall, ScheduleFires, Schedules
from cli.work_handlers.registry import SCHEDULED
from models.core.access.rules import Role
from models.core.lifecycle.commands import RUNNING
from models.core.schedules.timetables import due_run_id
from models.people.workspaces import delete_workspace
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.endpoint import Serve, never
from tests.support.engine import Engine
from tests.support.items import read
from tests.support.patience import eventually, found_when
from tests.support.schedules import SELDOM, handle_of, until_schedule
from tests.support.sources import Source, goods, make_source
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=20)

WORKFLOW_KIND = WorkflowKind.DATA_SOURCE_SCHEDULE
NEW_YEAR = f"{datetime.now(UTC).year + 1}-01-01T00:00:00.000Z"
APPLE = goods(("a", "Apple", 1))
Make = Callable[..., Awaitable[Source]]


@pytest.fixture
async def scheduled(client: Client, space: Space, engine: Engine, serve: Serve) -> Make:
    """Makes data sources whose schedule is there, and does not fire while a test looks."""
    assert engine.database is space.database

    async def make(as_: Client = client, **changes: Any) -> Source:
        made = await make_source(as_, space, serve, **{"schedule": {"cron": SELDOM}, **changes})
        made.answers(APPLE)
        await until(engine, made, lambda found: found is not None)
        return made

    return make


async def until(engine: Engine, source: Source, condition: Any) -> Any:
    """The schedule once it satisfies a condition."""
    return await until_schedule(engine, UUID(source.id), condition, workflow_kind=WORKFLOW_KIND)


async def fire(engine: Engine, source: Source) -> None:
    """Fire now, as an operator does; never twice in one second, which is one due time."""
    await asyncio.sleep(1)
    await handle_of(engine.client, UUID(source.id), WORKFLOW_KIND).trigger()


async def until_runs(source: Source, *statuses: str) -> list[Any]:
    """The runs of a data source, newest first, once they have these statuses."""
    found: list[Any] = []

    async def so() -> bool:
        found[:] = read(await source.client.get(f"{source.path}/runs"))
        return [one["status"] for one in found] == list(statuses)

    await eventually(so, what=f"runs {statuses}")
    return found


async def shown(source: Source) -> Any:
    return read(await source.client.get(source.path))


async def change(source: Source, **body: Any) -> Any:
    return read(await source.client.patch(source.path, json=body))


def look_at(description: ScheduleDescription, source: Source) -> None:
    """Check what a schedule starts, and how it treats due times that meet or are missed."""
    schedule, action = description.schedule, description.schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    assert (action.workflow, action.id) == ("ScheduleFire", f"data-source-schedule/{source.id}")
    assert action.priority.fairness_key
    assert schedule.spec.time_zone_name == "Europe/Berlin"
    assert schedule.policy.overlap is ScheduleOverlapPolicy.SKIP
    assert schedule.policy.catchup_window.total_seconds() == 600
    assert schedule.policy.pause_on_failure is False
    kinds = SearchAttributeKey.for_keyword("RunKind")
    assert description.typed_search_attributes.get(kinds) == "data-source-schedule"


async def is_now(
    engine: Engine, source: Source, changed: Any, *, note: str | None, due: str | None
) -> None:
    """Check that Temporal has a schedule with this note, or none, and that the API says so."""
    assert changed is None or changed.get("nextRunAt") == due, "the answer is true at once"

    def as_noted(found: Any) -> bool:
        if found is None or note is None:
            return found is None and note is None
        paused = not note.endswith("refresh")
        return (found.schedule.state.note, found.schedule.state.paused) == (note, paused)

    await until(engine, source, as_noted)
    read_again = await source.client.get(source.path)
    if read_again.status_code == 200:
        assert read_again.json()["data"].get("nextRunAt") == due


@pytest.mark.long
async def test_temporal_follows_what_becomes_of_a_data_source(
    engine: Engine, scheduled: Make
) -> None:
    made = await scheduled(schedule={"cron": SELDOM, "timezone": "Europe/Berlin"}, label="Prices")
    now = partial(is_now, engine, made)
    found = await until(engine, made, lambda found: found is not None)
    look_at(found, made)
    midnight = f"{found.info.next_action_times[0]:%Y-%m-%dT%H:%M:%S}.000Z"
    await now(await shown(made), note="Prices · refresh", due=midnight)
    cron = {"cron": SELDOM}
    await now(await change(made, schedule=cron), note="Prices · refresh", due=NEW_YEAR)
    disabled = await change(made, enabled=False)
    await now(disabled, note="Prices · refresh. The data source is disabled.", due=None)
    await now(await change(made, enabled=True), note="Prices · refresh", due=NEW_YEAR)
    paused = await change(made, schedule={**cron, "enabled": False})
    await now(paused, note="Prices · refresh. The schedule is disabled.", due=None)
    renamed = await change(made, schedule=cron, label="Costs")
    await now(renamed, note="Costs · refresh", due=NEW_YEAR)
    path = f"/v1/items/{renamed['itemId']}"
    read(await made.client.post(f"{path}/archive"))
    await now(None, note="Costs · refresh. The data source is archived.", due=None)
    read(await made.client.post(f"{path}/restore"))
    await now(None, note="Costs · refresh", due=NEW_YEAR)
    read(await made.client.patch(path, json={"title": "Fees"}))
    await now(None, note="Fees · refresh", due=NEW_YEAR)
    read(await made.client.delete(made.path))
    await now(None, note=None, due=None)
    read(await made.client.post(f"{path}/restore"))
    await now(None, note="Fees · refresh", due=NEW_YEAR)
    await now(await change(made, schedule=None), note=None, due=None)
    await now(await change(made, schedule=cron), note="Fees · refresh", due=NEW_YEAR)
    async with engine.database.transaction() as work:
        await delete_workspace(work, made.space.actor)
    await now(None, note=None, due=None)


@pytest.mark.long
async def test_a_due_time_makes_its_refresh(engine: Engine, scheduled: Make) -> None:
    made = await scheduled()
    await fire(engine, made)
    [run] = await until_runs(made, "succeeded")
    assert (run["trigger"], run["actorUserId"]) == ("schedule", str(made.space.user_id))
    assert (await made.records()).keys() == {"a"}
    child = await engine.client.get_workflow_handle(f"data-source-refresh/{run['id']}").describe()
    assert (child.parent_id or "").startswith(f"data-source-schedule/{made.id}-")
    assert child.raw_info.priority.fairness_key
    source = SearchAttributeKey.for_keyword("RunSource")
    assert child.typed_search_attributes.get(source) == "schedule"
    due = datetime(2026, 1, 1, tzinfo=UTC)
    call = FireCall(WORKFLOW_KIND.workflow_id(made.id), due)
    fires = ScheduleFires(engine.database)
    accepted = await asyncio.gather(*(fires.accept(call) for _ in range(3)))
    assert {one and one.run_id for one in accepted} == {str(due_run_id(call.schedule_id, due))}
    await made.client.post(f"{made.path}/runs/{due_run_id(call.schedule_id, due)}/cancel")


@pytest.mark.long
async def test_due_times_that_meet_an_open_refresh_are_counted(
    engine: Engine, scheduled: Make
) -> None:
    made = await scheduled()
    made.answers(never)
    await fire(engine, made)
    [first] = await until_runs(made, "running")
    await fire(engine, made)
    await until(engine, made, lambda found: found.info.num_actions_skipped_overlap == 1)
    await made.client.post(f"{made.path}/runs/{first['id']}/cancel")
    by_hand = read(await made.client.post(f"{made.path}/refresh", json={}))
    call = FireCall(WORKFLOW_KIND.workflow_id(made.id), datetime(2026, 1, 1, tzinfo=UTC))
    for _ in range(2):
        assert await ScheduleFires(engine.database).accept(call) is None
    await Schedules(engine.database, engine.client, SCHEDULED).synchronize(call.schedule_id)
    assert (await shown(made))["passedOver"] == {"skipped": 2, "missed": 0}
    await made.client.post(f"{made.path}/runs/{by_hand['id']}/cancel")
    await until_runs(made, "cancelled", "cancelled")


@pytest.mark.long
async def test_a_fire_that_is_cancelled_cancels_its_refresh(
    engine: Engine, scheduled: Make
) -> None:
    made = await scheduled()
    made.answers(never)
    await fire(engine, made)
    await until_runs(made, "running")
    found = await until(engine, made, lambda found: found.info.recent_actions)
    action = found.info.recent_actions[0].action
    await engine.client.get_workflow_handle(action.workflow_id).cancel()
    [run] = await until_runs(made, "cancelled")
    assert (run["error"], run["errorKind"]) == ("Cancelled in Temporal.", "cancelled")


@pytest.mark.long
async def test_refreshes_that_are_due_together_take_turns(engine: Engine, scheduled: Make) -> None:
    """A refresh that waits for its turn is a row, as one that a person asks for."""
    cap = RUNNING[WorkflowKind.DATA_SOURCE_REFRESH]
    sources = [await scheduled() for _ in range(cap + 2)]
    for each in sources:
        each.answers(never)
        await fire(engine, each)

    async def runs() -> list[Any]:
        return [run for each in sources for run in read(await each.client.get(f"{each.path}/runs"))]

    def statuses(found: list[Any]) -> Counter[str]:
        counted = Counter(run["status"] for run in found)
        assert counted["running"] <= cap
        return counted

    full = {"running": cap, "queued": 2}
    found = await found_when(runs, lambda found: statuses(found) == full)
    async with engine.database.reading() as work:
        waiting = select(outbox.c.subject_id).where(
            outbox.c.workspace_id == sources[0].space.id, outbox.c.intent == "start"
        )
        in_line = {str(row.subject_id) for row in await work.rows(waiting)}
    assert in_line == {run["id"] for run in found if run["status"] == "queued"}
    [first, *_] = [
        f"{each.path}/runs/{run['id']}"
        for each, run in zip(sources, found, strict=True)
        if run["status"] == "running"
    ]
    read(await sources[0].client.post(f"{first}/cancel"))
    next_one = {"running": cap, "queued": 1, "cancelled": 1}
    await found_when(runs, lambda found: statuses(found) == next_one)


@pytest.mark.long
@pytest.mark.parametrize("lost", ["left", "viewer"])
async def test_a_source_whose_creator_lost_access_is_not_refreshed(
    client: Client, space: Space, engine: Engine, scheduled: Make, lost: str
) -> None:
    user_id, token = await space.member(Role.EDITOR)
    made = await scheduled(as_=client.with_token(token))
    if lost == "left":
        await space.remove(user_id)
    else:
        members = f"{space.path}/members/{user_id}"
        read(await client.patch(members, json={"role": Role.VIEWER.value}))
    made.client = client
    for times in (1, 2):
        await fire(engine, made)
        runs = await until_runs(made, *["failed"] * times)
        assert (runs[0]["errorKind"], runs[0]["actorUserId"]) == ("write", str(user_id))
        assert "as the creator of the data source" in runs[0]["error"]
    assert made.endpoint.requests == [], "nothing is fetched in vain"
    owner = client if lost == "left" else client.with_token(token)
    notices = read(await owner.get(f"{space.path}/notifications"))["notifications"]
    told = [one["runId"] for one in notices if one["kind"] == "data_source_failed"]
    assert told == [runs[-1]["id"]], "once until a refresh succeeds"


@pytest.mark.long
async def test_the_sweep_mends_what_operators_did(engine: Engine, scheduled: Make) -> None:
    lost, paused = await scheduled(), await scheduled()
    await handle_of(engine.client, UUID(lost.id), WORKFLOW_KIND).delete()
    await handle_of(engine.client, UUID(paused.id), WORKFLOW_KIND).pause(note="Quiet, please.")
    schedules = Schedules(engine.database, engine.client, SCHEDULED)
    maintenance = ScheduleMaintenance(engine.database, engine.client, schedules)

    async def mended() -> bool:
        await ActivityEnvironment().run(maintenance.reconcile_schedules)
        found = [
            await until_schedule(engine, UUID(one.id), lambda _: True, workflow_kind=WORKFLOW_KIND)
            for one in (lost, paused)
        ]
        return all(one is not None and not one.schedule.state.paused for one in found)

    await eventually(mended)
